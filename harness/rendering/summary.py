"""A report as Markdown, for a pull request or the step summary of a workflow.

The sentence comes first, then the five levels of each implementation, then what failed, each cause with its folded
reproducer; what is not required is folded, and untested cells have their own section. A comment on a pull request holds
65,536 characters: causes beyond `ROOM` get one line each, and those beyond that are only counted. Names and reasons
come from a candidate: none of them becomes markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.rendering import facts, sentence, tables
from harness.rendering.causes import Cause, causes
from harness.rendering.marks import MARKS, brief, cut, first_line, plain, printable
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, Cell
from harness.report.levels import LEVELS, counted, is_required, standings
from harness.report.report import Report

#: The most characters for failures.
ROOM = 36_000
_MOST_GAPS = 40
#: Implementations whose levels, and whose sentences too, are listed.
_MOST_ROWS, _MOST_SENTENCES = 40, 12
_MOST_LACKING = _MOST_UNTOUCHED = 20
#: Characters of a reason, and of a name or a reason in a line.
_LONGEST, _IN_LINE = 8_000, 200


def block(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{printable(cut(text)).rstrip()}\n{fence}"


def markdown(report: Report) -> str:
    """The summary."""
    verdict, said = sentence.outcome(report)
    parts = [
        f"## {MARKS[verdict]} {plain(brief(said))}",
        f"{facts.counted(report) or 'no cells'}.",
        f"{plain(facts.place(report))}. Suite at {plain(facts.commit(report))}.",
    ]
    if not report.complete:
        parts.append(f"**This report is partial: {report.why_partial()}.**")
    parts += _levels(report)
    parts += _failures(report)
    parts += _support(report)
    parts.append(f"### Table\n\n{_table(report)}")
    parts += _gaps(report)
    parts += _untouched(report)
    return "\n\n".join(parts) + "\n"


def _levels(report: Report) -> Iterator[str]:
    """The five levels of each implementation, and its sentence if there are several."""
    found = sentence.implementations(report)
    if not found:
        return
    rows = [f"| {_named(one)} | {' | '.join(_counts(one))} |" for one in found[:_MOST_ROWS]]
    titles = [level if is_required(level, report.required) else f"{level} (not required)" for level in LEVELS]
    yield "\n".join([f"| implementation | {' | '.join(titles)} |", "|---" * (len(LEVELS) + 1) + "|", *rows])
    if len(found) > len(rows):
        yield f"And {len(found) - len(rows)} more implementations."
    if 1 < len(found) <= _MOST_SENTENCES:
        yield "\n".join(f"- {_named(one)}: {plain(cut(one.sentence, 2 * _IN_LINE))}" for one in found)


def _named(one: sentence.Implementation) -> str:
    return plain(cut(f"{one.operator} / {one.backend}", _IN_LINE))


def _counts(one: sentence.Implementation) -> list[str]:
    """`✓ 14/14` for each level."""
    found = standings(one.cells, one.suite)
    return [f"{MARKS[level.verdict]} {level.passed}/{level.tested}" if level.tested else "-" for level in found]


def _table(report: Report) -> str:
    legend = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    _, _, table = tables.markdown(report).partition("\n\n")
    return f"Numbers count dtypes: {legend}.\n\n{table.rstrip()}"


def _failures(report: Report) -> Iterator[str]:
    """What failed or lacks evidence at the required levels, each cause once."""
    failed, unknown = (_required(report, verdict) for verdict in (FAIL, NO_EVIDENCE))
    found = causes(failed, report.suite)
    found += [Cause(level, "", (cell,)) for level, cell in _at(report, unknown)]
    if not found:
        return
    many = "1 cause" if len(found) == 1 else f"{len(found)} causes"
    yield f"### Failures\n\n{len(failed) + len(unknown)} cells failed or have no evidence, by {many}."
    room = ROOM
    for number, cause in enumerate(found):
        text = _failure(cause)
        if len(text) > room:
            yield from _briefly(found[number:], room)
            return
        room -= len(text)
        yield text


def _required(report: Report, verdict: str) -> list[Cell]:
    return [
        cell
        for level, found, cell in counted(report.cells, report.suite)
        if found == verdict and is_required(level, report.required)
    ]


def _at(report: Report, cells: Iterable[Cell]) -> list[tuple[str, Cell]]:
    return [(level, cell) for level, _, cell in counted(cells, report.suite)]


def _who(cause: Cause) -> str:
    """`values: forward-parity, layouts: lltm / mine / cpu / float32, float64`."""
    properties = cause.names("property")
    more = f" and {len(properties) - 3} more" if len(properties) > 3 else ""
    places = " / ".join(", ".join(cause.names(axis)) for axis in ("operator", "backend", "device", "dtype"))
    return plain(cut(f"{cause.level}: {', '.join(properties[:3])}{more}: {places}", _IN_LINE))


def _failure(cause: Cause) -> str:
    first = cause.cells[0]
    parts = [
        f"<details><summary>{MARKS[first.verdict]} <b>{_who(cause)}</b></summary>",
        block(cut(first.reason, _LONGEST)),
    ]
    if len(cause.cells) > 1:
        properties = plain(cut(", ".join(cause.names("property")), 3 * _IN_LINE))
        parts.append(f"{len(cause.cells)} cells fail for this reason, of {properties}.")
    if cause.follows:
        parts.append(f"It may follow from wrong {cause.follows}.")
    if isinstance(first.figures.get("reproducer"), str):
        parts.append("This script reproduces it:\n\n" + block(first.figures["reproducer"], "python"))
    return "\n\n".join([*parts, "</details>"])


def _briefly(found: Sequence[Cause], room: int) -> Iterator[str]:
    lines = []
    for number, cause in enumerate(found):
        first = cause.cells[0]
        line = f"- {MARKS[first.verdict]} {_who(cause)}: {plain(first_line(first.reason, 200))}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"- and {len(found) - number} more, see the JSON report")
            break
        lines.append(line)
    yield "\n".join(lines)


def _support(report: Report) -> Iterator[str]:
    """What the levels above the required one ask for and is not there, folded."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for level, verdict, cell in counted(report.cells, report.suite):
        if not is_required(level, report.required) and verdict in (FAIL, NO_EVIDENCE, DECLARED):
            groups.setdefault((level, cell.operator, cell.backend, cell.property), []).append(cell)
    if not groups:
        return
    lines = []
    for names, cells in sorted(groups.items(), key=lambda item: LEVELS.index(item[0][0])):
        level, operator, backend, name = names
        dtypes = ", ".join(dict.fromkeys(cell.dtype for cell in cells))
        said = cut(f"{level}: {name} of {operator} / {backend} ({dtypes})", _IN_LINE)
        lines.append(f"- {MARKS[DECLARED]} {plain(said)}: {plain(first_line(cells[0].reason, _IN_LINE))}")
    if len(lines) > _MOST_LACKING:
        lines[_MOST_LACKING:] = [f"- and {len(lines) - _MOST_LACKING} more, see the JSON report"]
    listed = "\n".join(lines)
    yield f"<details><summary>Not supported, and not required: {len(groups)}</summary>\n\n{listed}\n\n</details>"


def _gaps(report: Report) -> Iterator[str]:
    found = facts.gaps(report.cells)
    missing = facts.never_asked(report)
    if not found and not missing:
        return
    lines = ["### What was not tested", ""]
    for gap in found[:_MOST_GAPS]:
        what = "; ".join(", ".join(gap.names(axis)) for axis in ("property", "backend", "device", "dtype"))
        reason = plain(first_line(gap.reason, _IN_LINE))
        form = f" in the form {plain(cut(gap.form, _IN_LINE))}" if gap.form else ""
        which = f"{len(gap.cells)} {gap.verdict}{form}"
        lines.append(f"- {MARKS[gap.verdict]} {which}: {reason} ({plain(cut(what, 2 * _IN_LINE))})")
    if len(found) > _MOST_GAPS:
        lines.append(f"- and {len(found) - _MOST_GAPS} more reasons, see the JSON report")
    lines += [f"- not selected in this run: {axis} {plain(', '.join(names))}" for axis, names in missing.items()]
    holes = facts.holes(report.cells)
    if holes:
        lines.append(f"- {holes} combinations of this report's names have no cell")
    yield "\n".join(lines)


def _untouched(report: Report) -> Iterator[str]:
    """Lines of the implementations that no call reached: a sentence for each file."""
    lines = [
        f"- {plain(cut(f'{found.name()}: {said}', 2 * _IN_LINE))}."
        for found in facts.untouched(report.cells)
        for said in found.sentences
    ]
    if not lines:
        return
    if len(lines) > _MOST_UNTOUCHED:
        lines[_MOST_UNTOUCHED:] = [f"- and {len(lines) - _MOST_UNTOUCHED} more, see the JSON report"]
    yield "\n".join(["### Reached by no call", "", *lines])
