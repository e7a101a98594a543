"""`python -m harness contract slow.py:rms_norm`: show the contract that is derived from a reference function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.deriving.contract import derive
from harness.deriving.saving import source
from harness.errors import UsageError
from harness.report.atomic_write import write_atomically


def main(arguments: Sequence[str]) -> int:
    """Print the contract's file, or write it."""
    parser = parsing.parser("contract", COMMANDS["contract"])
    parser.add_argument("reference", metavar="FILE.py:FUNCTION", help="the function that you trust")
    parser.add_argument("--example", default="", help="a function that returns the arguments of one call")
    parser.add_argument("--forward-only", action="store_true", help="ask no gradient")
    parser.add_argument("--save", type=Path, help="write the file; judge with --spec-path FILE")
    given = parser.parse_args(arguments)
    derived = derive(given.reference, given.example, given.forward_only)
    folder = given.save.parent if given.save else Path.cwd()
    text = source(derived, folder)
    if given.save is None:
        print(text, end="")
        return 0
    if given.save.exists():
        raise UsageError(f"--save {given.save} exists already: it may have been corrected; name another file")
    write_atomically(given.save, text)
    name = derived.operator.name
    print(f"written: {given.save}; judge with --spec-path {given.save} --candidate {name}=FILE.py:FUNCTION")
    return 0
