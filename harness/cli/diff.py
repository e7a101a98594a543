"""`python -m harness diff`: two reports, cell by cell."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.rendering import diff, tables
from harness.report.difference import difference
from harness.report.report import Report


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if anything is worse or gone."""
    parser = parsing.parser("diff", COMMANDS["diff"])
    parser.add_argument("before", type=Path, metavar="A.json")
    parser.add_argument("after", type=Path, metavar="B.json")
    parser.add_argument("--markdown", action="store_true", help="for a pull request, instead of tables")
    given = parser.parse_args(arguments)
    found = difference(Report.read(given.before), Report.read(given.after))
    if given.markdown:
        print(diff.markdown(found), end="")
    else:
        diff.print_difference(found, tables.console(sys.stdout))
    return 1 if found.regressed else 0
