"""`python -m harness compile-rocm`: do the CUDA sources compile, without a GPU?"""

from __future__ import annotations

from collections.abc import Sequence

from harness.building import rocm
from harness.cli import cuda_sources, parsing
from harness.cli.main import COMMANDS


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 if all of them compile."""
    parser = parsing.parser("compile-rocm", COMMANDS["compile-rocm"])
    parser.add_argument("architectures", nargs="*", default=list(rocm.ARCHITECTURES))
    return cuda_sources.compile_all(rocm.compile_for_architectures, parser.parse_args(arguments).architectures)
