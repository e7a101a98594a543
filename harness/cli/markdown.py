"""`python -m harness markdown`: a report as a summary for a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering import summary


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 whatever the verdicts are."""
    parser = parsing.parser("markdown", COMMANDS["markdown"])
    parsing.add_reports(parser)
    parsing.add_output(parser, "instead of standard output")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports)
    return reports.deliver(summary.markdown(report), given.output)
