"""`python -m harness html`: a report as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.bench import record
from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering import html


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 whatever the verdicts are."""
    parser = parsing.parser("html", COMMANDS["html"])
    parsing.add_reports(parser)
    parsing.add_output(parser, "instead of standard output")
    parser.add_argument("--bench", type=Path, metavar="FILE", help="a bench record: its speed is drawn too")
    given = parser.parse_args(arguments)
    bench = record.read(given.bench, option="--bench") if given.bench else None
    return reports.deliver(html.page(reports.read(given.reports), bench), given.output)
