"""`python -m harness compile-cuda`: do the CUDA sources compile, without a GPU?"""

from __future__ import annotations

from collections.abc import Sequence

from harness.building import build
from harness.cli import cuda_sources, parsing
from harness.cli.main import COMMANDS
from harness.fleet import local


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if all of them compile."""
    parser = parsing.parser("compile-cuda", COMMANDS["compile-cuda"])
    parser.add_argument("architectures", nargs="*", default=["80", "89", "90", "100", "120"])
    given = parser.parse_args(arguments).architectures
    return cuda_sources.compile_all(build.compile_for_architectures, given, jobs=local.cores())
