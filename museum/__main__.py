"""`python -m museum`: judge releases that carry a known defect, and the releases that repaired it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.errors import HarnessError
from harness.report.atomic_write import write_atomically
from museum import document, entries
from museum.visiting import Visit, visit

RECORD = Path("reports/museum.json")


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m museum", description=__doc__)
    made.add_argument("--entry", action="append", default=[], metavar="NAME", help="judge this entry (repeatable)")
    made.add_argument(
        "--package", action="append", default=[], metavar="P", help="the entries of a package (repeatable)"
    )
    made.add_argument(
        "--device", action="append", default=[], metavar="D", help="only entries on this device (repeatable)"
    )
    made.add_argument(
        "-o", "--output", type=Path, default=RECORD, metavar="FILE", help=f"the record; default: {RECORD}"
    )
    made.add_argument("--keep", action="store_true", help="keep what the record has of entries that are not judged now")
    made.add_argument("--list", action="store_true", help="list the entries and judge nothing")
    made.add_argument(
        "--draw", type=Path, metavar="RECORD", help=f"draw {document.DOCUMENT} from a record, judge nothing"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    """0 if every entry behaves as it says; 1 if one does not; 2 for an option or an entry that cannot be read."""
    options, console = _parser().parse_args(arguments), Console()
    try:
        if options.draw:
            record = json.loads(options.draw.read_text())
            document.DOCUMENT.write_text(document.insert(record, document.DOCUMENT.read_text()))
            return 0
        known = entries.read()
        asked = entries.selected(known, options.entry, options.package)
        kept = _kept(options.output, {entry.name for entry in known}) if options.keep else []
    except (HarnessError, OSError, json.JSONDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    asked = tuple(entry for entry in asked if not options.device or entry.device in options.device)
    if not asked:
        print("error: no entry is selected, but at least one should be: leave --device away", file=sys.stderr)
        return 2
    if not (options.list or options.entry or options.device or torch.cuda.is_available()):
        asked, count = _without_gpu(asked), len(asked)
        if len(asked) < count:
            console.print(f"{count - len(asked)} entries on cuda are left out: torch finds no GPU here")
    if options.list:
        for entry in asked:
            console.print(f"{entry.name}: {entry.package} {entry.broken}, {entry.defect}", highlight=False)
        return 0
    return _judged(asked, options.output, kept, console)


def _without_gpu(asked: Sequence[entries.Entry]) -> tuple[entries.Entry, ...]:
    """The entries that can be judged without a GPU; all, if none can: their rows say why they were not."""
    return tuple(entry for entry in asked if entry.device != "cuda") or tuple(asked)


def _judged(asked: Sequence[entries.Entry], output: Path, kept: Sequence[dict[str, Any]], console: Console) -> int:
    visits: list[Visit] = []
    output.parent.mkdir(parents=True, exist_ok=True)
    for entry in asked:
        visits.append(visit(entry))
        rows = {row["name"]: row for row in (*kept, *(found.record() for found in visits))}
        record = {"entries": [rows[name] for name in sorted(rows)]}
        write_atomically(output, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        mark = "[green]✓[/]" if visits[-1].holds else "[red]✗[/]"
        console.print(f"{mark} {entry.name}: {escape(visits[-1].sentence)}", highlight=False, soft_wrap=True)
    console.print(_table(visits))
    wrong = [found.entry.name for found in visits if not found.holds]
    console.print(f"{len(visits) - len(wrong)} of {len(visits)} entries behave as they say. The record is {output}.")
    if wrong:
        console.print(f"not as they say: {', '.join(wrong)}", highlight=False)
    return 1 if wrong else 0


def _kept(record: Path, known: set[str]) -> list[dict[str, Any]]:
    """The rows of an earlier record; of entries that are gone, none."""
    if not record.exists():
        return []
    return [row for row in json.loads(record.read_text())["entries"] if row["name"] in known]


def _table(visits: Sequence[Visit]) -> Table:
    table = Table("entry", "release", "outcome", "repaired in", "outcome", "as expected")
    for found in visits:
        entry = found.entry
        table.add_row(
            entry.name,
            f"{entry.package} {entry.broken}",
            found.broken.outcome,
            entry.fixed or "-",
            found.fixed.outcome,
            "yes" if found.holds else "[red]no[/]",
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
