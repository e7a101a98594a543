"""`python -m harness new-backend`: a copy of a backend, to be changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing, scaffold
from harness.cli.main import COMMANDS


def main(arguments: Sequence[str]) -> int:
    """Copy it and print the next steps."""
    parser = parsing.parser("new-backend", COMMANDS["new-backend"])
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--like", default="python-autograd", metavar="BACKEND", help="default: python-autograd")
    parser.add_argument("--into", type=Path, default=Path(), metavar="FOLDER", help="default: the present one")
    return parsing.say(lambda given: scaffold.new_backend(given.name, given.like, given.into), parser, arguments)
