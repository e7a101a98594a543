"""A report as Markdown, for a pull request or the step summary of a workflow.

Failures come first, each with its folded reproducer; untested cells have their own section. A comment on a pull
request holds 65,536 characters: failures beyond `ROOM` get one line each, and those beyond that are only counted.
Names and reasons come from a candidate: none of them becomes markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from harness.rendering import facts, tables
from harness.rendering.tables import plain
from harness.report.cell import NO_EVIDENCE, Cell
from harness.report.report import Report

#: The most characters for failures.
ROOM = 40_000
_MOST_GAPS = 40


def block(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def markdown(report: Report) -> str:
    """The summary."""
    verdict, sentence = facts.outcome(report)
    parts = [
        f"## {tables.MARKS[verdict]} Conformance: {sentence}",
        f"{facts.counted(report) or 'no cells'}.",
        f"{plain(facts.place(report))}. Suite at {plain(facts.commit(report))}.",
    ]
    if not report.complete:
        parts.append(f"**This report is partial: {report.why_partial()}.**")
    parts += _failures(report)
    parts.append(f"### Table\n\n{_table(report)}")
    parts += _gaps(report)
    return "\n\n".join(parts) + "\n"


def _table(report: Report) -> str:
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in tables.MARKS.items())
    _, _, table = tables.markdown(report).partition("\n\n")
    return f"Numbers count dtypes: {legend}.\n\n{table.rstrip()}"


def _failures(report: Report) -> Iterator[str]:
    bad = [*facts.failures(report.cells), *(cell for cell in report.cells if cell.verdict == NO_EVIDENCE)]
    if not bad:
        return
    yield f"### Failures\n\n{len(bad)} cells failed or have no evidence."
    room = ROOM
    for number, cell in enumerate(bad):
        text = _failure(cell)
        if len(text) > room:
            yield from _briefly(bad[number:], room)
            return
        room -= len(text)
        yield text


def _who(cell: Cell) -> str:
    return plain(f"{cell.property}: {cell.operator} / {cell.backend} / {cell.device} / {cell.dtype}")


def _failure(cell: Cell) -> str:
    parts = [f"<details><summary>{tables.MARKS[cell.verdict]} <b>{_who(cell)}</b></summary>", block(cell.reason)]
    if isinstance(cell.figures.get("reproducer"), str):
        parts.append("This script reproduces it:\n\n" + block(cell.figures["reproducer"], "python"))
    return "\n\n".join([*parts, "</details>"])


def _briefly(cells: Sequence[Cell], room: int) -> Iterator[str]:
    lines = []
    for number, cell in enumerate(cells):
        line = f"- {tables.MARKS[cell.verdict]} {_who(cell)}: {plain(cell.reason.splitlines()[0][:200])}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"- and {len(cells) - number} more, see the JSON report")
            break
        lines.append(line)
    yield "\n".join(lines)


def _gaps(report: Report) -> Iterator[str]:
    found = facts.gaps(report.cells)
    missing = facts.never_asked(report)
    if not found and not missing:
        return
    lines = ["### What was not tested", ""]
    for gap in found[:_MOST_GAPS]:
        what = "; ".join(", ".join(gap.names(axis)) for axis in ("property", "backend", "device", "dtype"))
        reason = plain(gap.reason.splitlines()[0])
        which = f"{len(gap.cells)} {gap.verdict}" + (f" in the form {plain(gap.form)}" if gap.form else "")
        lines.append(f"- {tables.MARKS[gap.verdict]} {which}: {reason} ({plain(what)})")
    if len(found) > _MOST_GAPS:
        lines.append(f"- and {len(found) - _MOST_GAPS} more reasons, see the JSON report")
    lines += [f"- not selected in this run: {axis} {plain(', '.join(names))}" for axis, names in missing.items()]
    holes = facts.holes(report.cells)
    if holes:
        lines.append(f"- {holes} combinations of this report's names have no cell")
    yield "\n".join(lines)
