"""`python -m harness new-operator`: a package with a contract and a backend that run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing, scaffold
from harness.cli.main import COMMANDS


def main(arguments: Sequence[str]) -> int:
    """Write it and print the next steps."""
    parser = parsing.parser("new-operator", COMMANDS["new-operator"])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--into", type=Path, default=Path(), metavar="FOLDER", help="default: the present one")
    return parsing.say(lambda given: scaffold.new_operator(given.name, given.into), parser, arguments)
