"""`python -m harness reached`: lines and branches of compiled sources that no call of the suite reaches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.errors import UsageError
from harness.rendering import tables
from harness.rendering.facts import ranges
from harness.rendering.marks import printable
from harness.report import strict_json
from harness.report.atomic_write import write_atomically
from harness.running import selection_options
from harness.sanitizing import gcov


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a property failed: the counts are then those of calls that stopped early."""
    parser = parsing.parser("reached", COMMANDS["reached"])
    selection_options.add(parser.add_argument, ("operator", "backend", "device", "dtype"))
    parser.add_argument(
        "--property", action="append", default=[], metavar="NAME", help="make the calls of this property (repeatable)"
    )
    parsing.add_output(parser, "where the record goes", Path("reports/reached.json"))
    given = parser.parse_args(arguments)
    _refuse_other_files(given.output)
    console, records = tables.console(sys.stdout), []
    for place, sources, failed in gcov.measured(selection_options.read(given), given.property):
        records.append(gcov.record(place, sources, failed))
        _print(console, records[-1])
    write_atomically(given.output, strict_json.written({"implementations": records}))
    print(f"\nrecord: {given.output}")
    return 1 if any(found["failed"] for found in records) else 0


def _refuse_other_files(output: Path) -> None:
    """Raise UsageError if there is a file that this command did not write."""
    if output.exists():
        found = strict_json.load(output, absent=f"{output} does not exist")
        if not isinstance(found, dict) or "implementations" not in found:
            raise UsageError(f"--output {output} would overwrite a file that is no such record; name another")


def _print(console: Console, found: dict[str, Any]) -> None:
    """The table of the files, then each line that no call reached, with its text."""
    table = Table("file", "lines", "reached by no call", "branches taken in no call, of lines")
    for file in found["files"]:
        name = Text(printable(_name(file)))
        table.add_row(name, str(len(file["lines"])), ranges(file["unreached"]), ranges(file["untaken"]))
    console.print(Text(f"{found['operator']} / {found['backend']} on {found['device']}", style="bold"))
    console.print(table)
    for file in found["files"]:
        text = Path(file["path"]).read_text(errors="replace").splitlines()
        for line in file["unreached"]:
            console.print(Text(printable(f"  {_name(file)}:{line}: {text[line - 1].strip()}")), soft_wrap=True)
    if found["failed"]:
        console.print(Text(f"failed, so that calls are missing: {', '.join(found['failed'])}", style="bold red"))


def _name(file: dict[str, Any]) -> str:
    """`_native/autograd.h`: the folder says whose file it is."""
    return "/".join(part for part in Path(file["path"]).parts[-3:] if part != "csrc")
