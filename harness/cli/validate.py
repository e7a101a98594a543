"""`python -m harness validate`: are these files reports?"""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.errors import HarnessError
from harness.report import schema
from harness.report.report import load


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if one of the files is no report."""
    parser = parsing.parser("validate", COMMANDS["validate"])
    parsing.add_reports(parser)
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="problems to print for each file")
    given = parser.parse_args(arguments)
    bad = False
    for path in given.reports:
        try:
            record = load(path)
        except HarnessError as error:
            wrong = [str(error)]
        else:
            wrong = [f"{path}: {problem}" for problem in schema.problems(record)]
        bad |= bool(wrong)
        for line in wrong[: given.limit]:
            print(line)
        if len(wrong) > given.limit:
            print(f"{path}: and {len(wrong) - given.limit} more")
        if not wrong:
            print(f"{path}: a report of version {record['schema']}, {len(record['cells'])} cells")
    return 1 if bad else 0
