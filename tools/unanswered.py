"""Which cells of the GPU no record answers: `python -m tools.unanswered` draws the list in docs/results.md.

What is asked is what a run on a GPU would ask of the backends of the suite today. A cell is answered where the record
of a GPU says that it holds, that it is declared not to hold, or why it is not run there. A backend that is judged where
it is named is `not-run` elsewhere, which is no answer; neither is a failure: what failed is mended and judged again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from backends.devices import CUDA
from harness import discovery
from harness.properties import all_properties
from harness.rendering.tables import insert
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.report import Report
from harness.running.selection import DTYPE_NAMES, Selection, slots
from tools.scoreboard import ROOT, records

DOCUMENT, MARK = Path("docs/results.md"), "python -m tools.unanswered"
#: Operator, backend, property and dtype; "" for the dtype of a property that is judged once.
Key = tuple[str, str, str, str]
#: What a backend that is judged on request says elsewhere.
_ON_REQUEST = "is judged where it is named"


@cache
def asked() -> list[Key]:
    """What a run on a GPU asks of each backend that needs no published package."""
    names = [name for name, found in discovery.all_backends().items() if not found.backend.needs]
    keys = (
        key(slot.cell(property.name, NOT_RUN, "asked"))
        for slot in slots(Selection(backends=tuple(names), devices=(CUDA,)))
        for property in all_properties().values()
        if slot.is_asked(property)
    )
    return list(dict.fromkeys(keys))


def key(cell: Cell) -> Key:
    """What a cell answers."""
    known = all_properties().get(cell.property)  # of an old record it may be gone
    return cell.operator, cell.backend, cell.property, "" if known is not None and known.once else cell.dtype


class Told(NamedTuple):
    """A cell of a record of a GPU: the commit and the name of the record."""

    commit: str
    cell: Cell
    record: str


@cache
def told(root: Path = ROOT) -> dict[Key, list[Told]]:
    """The cells of all records of a GPU, the latest last."""
    reports = [(path, Report.read(path)) for path, record in records(root) if "cells" in record]
    found: dict[Key, list[Told]] = {}
    for path, report in sorted(reports, key=lambda each: str(each[1].environment.get("time", ""))):
        commit, name = str(report.environment.get("commit"))[:7], path.relative_to(root / "results").as_posix()
        for cell in report.cells:
            if cell.device == CUDA and not (cell.verdict == NOT_RUN and _ON_REQUEST in cell.reason):
                found.setdefault(key(cell), []).append(Told(commit, cell, name))
    return found


def unanswered(keys: Iterable[Key], cells: Mapping[Key, Sequence[Told]]) -> dict[Key, str]:
    """By the cell that has no answer: empty where no record has it, else what the last one that has it says."""
    found = {}
    for key in keys:
        there = cells.get(key, [])
        if all(each.cell.verdict in (FAIL, NO_EVIDENCE) for each in there):
            found[key] = f"{there[-1].cell.verdict} at {there[-1].commit}" if there else ""
    return found


def table(found: dict[Key, str]) -> str:
    """A line for each operator, backend and property: the dtypes."""
    if not found:
        return "Every cell has an answer."
    lines: dict[tuple[str, str, str, str], list[str]] = {}
    for (operator, backend, property, dtype), says in found.items():
        lines.setdefault((backend, operator, property, says), []).append(dtype)
    rows = []
    for (backend, operator, property, says), those in sorted(lines.items()):
        dtypes = ", ".join(dtype for dtype in DTYPE_NAMES if dtype in those)
        rows.append(f"| {backend} | {operator} | {property} | {dtypes} | {says} |")
    head = ["| backend | operator | property | dtypes | the last record |", "|---|---|---|---|---|"]
    return "\n".join([f"{len(found)} cells:", "", *head, *rows])


def main() -> None:
    """Draw."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    document = ROOT / DOCUMENT
    drawn = insert(table(unanswered(asked(), told())) + "\n", document.read_text(encoding="utf-8"), MARK)
    document.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
