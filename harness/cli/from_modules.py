"""`python -m harness from-modules`: a module that is trusted and one that is not, as functions that can be judged."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.deriving import modules
from harness.errors import UsageError
from harness.report.atomic_write import write_atomically


def main(arguments: Sequence[str]) -> int:
    """Write the two files, and print the command that judges."""
    parser = parsing.parser("from-modules", COMMANDS["from-modules"])
    parser.add_argument(
        "--reference", metavar="FILE.py:Model", required=True, help="with get_inputs() and get_init_inputs()"
    )
    parser.add_argument("--candidate", metavar="FILE.py:ModelNew", required=True, help="with the same parameters")
    parser.add_argument("--into", type=Path, default=Path("judged"), metavar="FOLDER", help="default: judged")
    return parsing.say(_written, parser, arguments)


def _written(given: argparse.Namespace) -> str:
    found = modules.problem(given.reference)
    text, name = modules.candidate(found, given.candidate)
    reference, candidate = given.into / "reference.py", given.into / "candidate.py"
    for path in (reference, candidate):
        if path.exists() and modules.MARK not in path.read_text("utf-8", "replace"):
            raise UsageError(f"--into: {path} exists already, and is another file: name another folder")
    given.into.mkdir(parents=True, exist_ok=True)
    write_atomically(reference, modules.reference(found))
    write_atomically(candidate, text)
    slow, example = modules.function_in(found, found.where), modules.example_of(found)
    return (
        f"written: {reference} and {candidate}. Judge them; with --forward-only if the answer has no backward:\n"
        f"python -m harness judge --candidate {candidate}:{name} --reference {reference}:{slow} "
        f"--example {reference}:{example}"
    )
