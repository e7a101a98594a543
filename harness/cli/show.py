"""`python -m harness show`: reports as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering import tables
from harness.report.atomic_write import write_atomically
from harness.report.report import refuse_other_files


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if the cells of the view are not green, by the rule of `levels.exit_reason`."""
    parser = parsing.parser("show", COMMANDS["show"])
    parsing.add_reports(parser)
    parsing.add_output(parser, "write the merged report too")
    parser.add_argument("--view", default=tables.EVERYTHING, help="conformance (all), gradcheck, parity or integration")
    parser.add_argument("--markdown", action="store_true", help="the table alone, as Markdown")
    parser.add_argument(
        "--into", type=Path, metavar="FILE", help="put the Markdown between `<!-- REPORT -->` and `<!-- end -->`"
    )
    given = parser.parse_args(arguments)
    report = reports.read(given.reports)
    if given.output:
        refuse_other_files("--output", given.output)
        report.write(given.output)
    if given.into:
        table, document = tables.markdown(report, given.view), given.into.read_text(encoding="utf-8")
        write_atomically(given.into, tables.insert(table, document, str(given.reports[0])))
    elif given.markdown:
        print(tables.markdown(report, given.view), end="")
    else:
        tables.print_report(report, tables.console(sys.stdout), given.view)
    return 0 if replace(report, cells=tuple(tables.selected(report, given.view))).ok else 1
