"""`python -m harness merge`: one report of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.report.levels import exit_reason
from harness.report.report import refuse_other_files


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if the joined report is not green, by the rule of `levels.exit_reason`."""
    parser = parsing.parser("merge", COMMANDS["merge"])
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the joined report goes")
    parser.add_argument("--any-cpu", action="store_true", help="allow shards from machines with different processors")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports, given.any_cpu)
    refuse_other_files("--output", given.output)
    report.write(given.output)
    why = exit_reason(report)
    print(f"{given.output}: {len(report.cells)} cells of {len(given.reports)} reports{', but ' + why if why else ''}")
    return 1 if why else 0
