"""`python -m harness merge`: one report of several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.report.report import refuse_other_files


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a cell failed or has no evidence, or if cells are missing."""
    parser = parsing.parser("merge", COMMANDS["merge"])
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the joined report goes")
    parser.add_argument("--any-cpu", action="store_true", help="allow shards from machines with different processors")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports, given.any_cpu)
    refuse_other_files("--output", given.output)
    report.write(given.output)
    missing = f", but {report.why_partial()}" if not report.complete else ""
    print(f"{given.output}: {len(report.cells)} cells of {len(given.reports)} reports{missing}")
    return 0 if report.ok else 1
