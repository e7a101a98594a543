"""A difference as a table for the terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.rendering import facts
from harness.rendering.marks import MARKS, STYLES, cut, first_line, plain, printable
from harness.report import figures
from harness.report.cell import NOT_RUN, Cell
from harness.report.difference import Change, Difference
from harness.report.levels import Standing

#: (cell, verdict before, verdict after, reason) of one line.
_Line = tuple[Cell, str, str, str]


def headline(found: Difference) -> str:
    """`2 worse, 1 vanished, 3 better, 0 appeared, 120 as before`."""
    counts = [("worse", found.worse), ("vanished", found.vanished), ("better", found.better)]
    words = [f"{len(cells)} {name}" for name, cells in [*counts, ("appeared", found.appeared)]]
    return ", ".join([*words, f"{found.same} as before"])


def _sections(found: Difference) -> Iterator[tuple[str, list[_Line]]]:
    yield "Worse", [_verdicts(change) for change in found.worse]
    yield "Vanished", [(cell, cell.verdict, "", "it has no cell any more") for cell in found.vanished]
    yield "Better", [_verdicts(change) for change in found.better]
    yield "Appeared", [(cell, "", cell.verdict, _first(cell)) for cell in found.appeared]
    yield "Fails otherwise", [_verdicts(change) for change in found.otherwise]
    yield "Allowance used", [_fit(change) for change in found.fits]


def _first(cell: Cell) -> str:
    return first_line(cell.reason)


def _verdicts(change: Change) -> _Line:
    return change.after, change.before.verdict, change.after.verdict, _first(change.after)


def _fit(change: Change) -> _Line:
    one, other = (facts.share_words(figures.used(cell) or 0.0) for cell in (change.before, change.after))
    return change.after, one, other, ""


def _who(cell: Cell) -> str:
    return "/".join(cell.key)


def print_difference(found: Difference, console: Console) -> None:
    """The levels that changed, a table for each kind of change that there is, then the environment."""
    if found.levels:
        table = Table(
            "implementation", "level", "was", "is", title=f"Levels: {len(found.levels)}", title_justify="left"
        )
        for change in found.levels:
            who = Text(printable(f"{change.operator}/{change.backend}"))
            table.add_row(who, change.level, _standing(change.before), _standing(change.after))
        console.print(table)
    for title, lines in _sections(found):
        if not lines:
            continue
        table = Table("cell", "was", "is", "reason", title=f"{title}: {len(lines)}", title_justify="left")
        for cell, was, now, reason in lines:
            table.add_row(Text(printable(_who(cell))), _verdict(was), _verdict(now), Text(printable(reason)))
        console.print(table)
    if found.environment:
        table = Table("fact", "was", "is", title="Environment", title_justify="left")
        for name, one, other in found.environment:
            table.add_row(Text(printable(name)), *(Text(printable(cut(str(value), 2_000))) for value in (one, other)))
        console.print(table)
    for name in found.partial:
        console.print(f"The report {name} is partial: cells may be missing for that alone.", style="yellow")
    console.print(headline(found), style="bold red" if found.regressed else "bold green")


def _verdict(word: str) -> Text:
    return Text(f"{MARKS[word]} {word}", style=STYLES[word]) if word in MARKS else Text(word)


def _standing(found: Standing | None) -> Text:
    """`✗ fail, 3 of 4`."""
    if found is None or not found.tested:
        return _verdict(NOT_RUN)
    return _verdict(found.verdict).append(f", {found.passed} of {found.tested}")


def markdown(found: Difference) -> str:
    """The same for a pull request."""
    parts = [f"## {'✗' if found.regressed else '✓'} Conformance, compared: {headline(found)}"]
    if found.levels:
        rows = [
            f"| {plain(f'{one.operator}/{one.backend}')} | {one.level} | {_standing(one.before).plain} "
            f"| {_standing(one.after).plain} |"
            for one in found.levels
        ]
        head = ["### Levels", "", "| implementation | level | was | is |", "|---|---|---|---|"]
        parts.append("\n".join([*head, *rows]))
    for title, lines in _sections(found):
        if lines:
            rows = [
                f"| {plain(_who(cell))} | {_marked(was)} | {_marked(now)} | {plain(reason)} |"
                for cell, was, now, reason in lines
            ]
            parts.append("\n".join([f"### {title}", "", "| cell | was | is | reason |", "|---|---|---|---|", *rows]))
    if found.environment:
        rows = [f"| {plain(name)} | {plain(str(one))} | {plain(str(new))} |" for name, one, new in found.environment]
        parts.append("\n".join(["### Environment", "", "| fact | was | is |", "|---|---|---|", *rows]))
    parts += [f"The report {name} is partial: cells may be missing for that alone." for name in found.partial]
    return "\n\n".join(parts) + "\n"


def _marked(word: str) -> str:
    return f"{MARKS[word]} {word}" if word in MARKS else plain(word)
