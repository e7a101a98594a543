"""`python -m harness badge`: a report as an endpoint badge."""

from __future__ import annotations

import json
from collections.abc import Sequence

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering import badge


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 whatever the verdicts are."""
    parser = parsing.parser("badge", COMMANDS["badge"])
    parsing.add_reports(parser)
    parsing.add_output(parser, "instead of standard output")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports)
    return reports.deliver(json.dumps(badge.badge(report)) + "\n", given.output)
