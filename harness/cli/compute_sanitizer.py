"""`python -m harness compute-sanitizer`: the kernels under its four tools."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.rendering import tables
from harness.report.report import refuse_other_files
from harness.running import option_values, sandbox, selection_options
from harness.sanitizing import compute_sanitizer


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a tool reported an error or did not finish."""
    parser = parsing.parser("compute-sanitizer", COMMANDS["compute-sanitizer"])
    selection_options.add(parser.add_argument, ("operator", "backend", "dtype", "candidate", "spec-path"))
    parser.add_argument(
        "--tool", action="append", default=[], choices=compute_sanitizer.TOOLS, help="default: all four"
    )
    parser.add_argument("--jobs", type=option_values.whole(1), default=1, metavar="N", help="how many at a time")
    parser.add_argument(
        "--sandbox", choices=sandbox.CHOICES, default="auto", help="auto: candidates in bubblewrap; off: never"
    )
    parsing.add_output(parser, "where the report goes", Path("reports/compute-sanitizer.json"))
    given = parser.parse_args(arguments)
    refuse_other_files("--output", given.output)
    report = compute_sanitizer.run(
        selection_options.read(given),
        given.tool or compute_sanitizer.TOOLS,
        given.jobs,
        keep=lambda so_far: so_far.write(given.output),
        choice=given.sandbox,
    )
    report.write(given.output)
    tables.print_report(report, tables.console(sys.stdout))
    print(f"\nreport: {given.output}")
    return 0 if report.ok else 1
