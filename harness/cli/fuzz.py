"""`python -m harness fuzz`: hostile calls until the time is used."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.fuzzing import session
from harness.rendering import tables
from harness.report.report import refuse_other_files
from harness.running import option_values, selection_options


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a call had an outcome that it must not have."""
    parser = parsing.parser("fuzz", COMMANDS["fuzz"])
    selection_options.add(parser.add_argument, ("operator", "backend", "device", "dtype", "candidate"))
    parser.add_argument(
        "--seconds", type=option_values.seconds, default=600.0, metavar="S", help="time for the whole session"
    )
    parser.add_argument("--seed", type=option_values.whole(0), default=secrets.randbits(31), metavar="N")
    parser.add_argument(
        "--size",
        type=option_values.whole(1),
        action="append",
        default=[],
        metavar="N",
        help="let one dimension have this size in some calls; others have up to 33 (repeatable)",
    )
    parser.add_argument("--sanitize", action="store_true", help="build with AddressSanitizer and UBSan (`nox -s fuzz`)")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="where failing calls are kept, to be tried first")
    parsing.add_output(parser, "where the report goes", Path("reports/fuzz.json"))
    given = parser.parse_args(arguments)
    refuse_other_files("--output", given.output)
    selection = selection_options.read(given, given.sanitize)
    report = session.run(selection, given.seconds, given.seed, given.folder, tuple(given.size))
    report.write(given.output)
    tables.print_report(report, tables.console(sys.stdout))
    print(f"\nreport: {given.output}")
    return 0 if report.ok else 1
