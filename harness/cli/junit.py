"""`python -m harness junit`: a report as JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering import junit


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 whatever the verdicts are."""
    parser = parsing.parser("junit", COMMANDS["junit"])
    parsing.add_reports(parser)
    parsing.add_output(parser, "instead of standard output")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports)
    return reports.deliver(junit.junit(report), given.output)
