"""Reports drawn as tables: for the terminal with rich, and as Markdown for the README."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TextIO

from rich.console import Console
from rich.table import Table

from harness.errors import UnknownName, UsageError
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, WORST_FIRST, Cell
from harness.report.report import Report

#: A mark for each verdict, so that colour is never the only difference.
MARKS = {FAIL: "✗", NO_EVIDENCE: "?", DECLARED: "d", PASS: "✓", NOT_RUN: "-"}
STYLES = {FAIL: "bold red", NO_EVIDENCE: "yellow", DECLARED: "cyan", PASS: "green", NOT_RUN: "dim"}
#: The view that shows all properties.
EVERYTHING = "conformance"


def console(stream: TextIO) -> Console:
    """A console; for a log, which has no width, it is wide enough that no table is cut."""
    return Console(file=stream, width=None if stream.isatty() else 140)


def worst(cells: Iterable[Cell]) -> str:
    """The verdict of several cells: the worst of those that ran, `not-run` if none did."""
    verdicts = {cell.verdict for cell in cells}
    return next(verdict for verdict in WORST_FIRST if verdict in verdicts)


def _summary(cells: list[Cell]) -> str:
    """`✓ 4` or `✓ 1 - 3`: the number of dtypes for each verdict."""
    counts = [(MARKS[v], sum(cell.verdict == v for cell in cells)) for v in MARKS]
    return " ".join(f"{mark} {count}" for mark, count in counts if count)


Who = tuple[str, str]  # backend, device
Grid = tuple[list[Who], list[str], Callable[[Who, str], list[Cell]]]


def _grid(cells: Iterable[Cell], row: Callable[[Cell], str] = lambda cell: cell.property) -> Grid:
    slots: dict[tuple[Who, str], list[Cell]] = {}
    for cell in cells:
        slots.setdefault(((cell.backend, cell.device), row(cell)), []).append(cell)
    columns = sorted({who for who, _ in slots})
    rows = sorted({what for _, what in slots})
    return columns, rows, lambda who, what: slots.get((who, what), [])


def _by_operator(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.operator, []).append(cell)
    return found


def selected(report: Report, view: str) -> list[Cell]:
    """The cells of a view, which the report's own suite defines. Raises UnknownName."""
    if view == EVERYTHING:
        return list(report.cells)
    views = report.suite.views
    if view not in views:
        raise UnknownName("view", view, [EVERYTHING, *views])
    return [cell for cell in report.cells if cell.property in views[view]]


def print_report(report: Report, console: Console, view: str = EVERYTHING) -> None:
    """Backend by property, then every failure and every reason for a verdict other than pass."""
    cells = selected(report, view)
    machine = report.environment
    where = f"torch {machine['torch']}, {machine['gpu'] or machine['cpu']}"
    for operator, own in (_by_operator(cells) or {"no operator": []}).items():
        console.print(f"{view} of {operator}: {where}", style="italic", highlight=False, soft_wrap=True)
        console.print(_table(own))
    legend = "  ".join(f"[{STYLES[v]}]{MARKS[v]}[/] {v} {sum(c.verdict == v for c in cells)}" for v in MARKS)
    console.print(f"{legend}   (numbers in the table count dtypes)")
    for verdict, title in (
        (FAIL, "Failed"),
        (NO_EVIDENCE, "No evidence"),
        (DECLARED, "Declared"),
        (NOT_RUN, "Not run"),
    ):
        reasons: dict[str, list[Cell]] = {}
        for cell in cells:
            if cell.verdict == verdict:
                reasons.setdefault(cell.reason, []).append(cell)
        if reasons:
            console.print(f"\n[bold]{title}[/]")
        for reason, which in reasons.items():
            console.print(f"  {_who(which)}", style=STYLES[verdict], highlight=False, soft_wrap=True)
            console.print(f"    {reason}", markup=False, highlight=False, soft_wrap=True)
    if not report.complete:
        console.print(
            f"\n[bold red]This report is partial: {report.why_partial()}.[/]", highlight=False, soft_wrap=True
        )


def _table(cells: list[Cell]) -> Table:
    columns, rows, at = _grid(cells)
    table = Table()
    table.add_column("property")
    for backend, device in columns:
        table.add_column(f"{backend}\n{device}", justify="center")
    for row in rows:
        marks = []
        for column in columns:
            here = at(column, row)
            marks.append(f"[{STYLES[worst(here)]}]{_summary(here)}[/]" if here else "")
        table.add_row(row, *marks)
    return table


def _who(cells: list[Cell]) -> str:
    """`gradcheck of lltm: aten-cpp, cuda-accessor on cpu (float32, float16)`, with long lists shortened."""

    def joined(values: Iterable[str]) -> str:
        names = list(dict.fromkeys(values))
        return ", ".join(names)

    return (
        f"{joined(c.property for c in cells)} of {joined(c.operator for c in cells)}: "
        f"{joined(c.backend for c in cells)} on {joined(c.device for c in cells)} ({joined(c.dtype for c in cells)})"
    )


def plain(text: str) -> str:
    """Text on one line, escaped so that neither Markdown nor HTML interprets it."""
    line = " ".join(text.split())
    return re.sub(r"[\\`*{}\[\]<>#!|~&@$]|(?<![^\W_])_|_(?![^\W_])", lambda found: f"&#{ord(found[0])};", line)


def insert(table: str, document: str, name: str) -> str:
    """`document` with `table` between its lines `<!-- name -->` and `<!-- end -->`. Raises UsageError without them."""
    begin, end = f"<!-- {name} -->\n", "<!-- end -->"
    before, found, rest = document.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise UsageError(f"the document should have a line {begin.strip()!r} and after it a line {end!r}")
    return f"{before}{begin}\n{table}\n{end}{after}"


def markdown(report: Report, view: str = EVERYTHING) -> str:
    """The tables alone, for a document: with several operators first a table of all, then one for each by property."""
    cells = selected(report, view)
    machine = report.environment
    lines = [
        f"{machine['gpu'] or machine['cpu']}, torch {machine['torch']}, Python {machine['python']}: "
        + ", ".join(f"{n} {v}" for v in MARKS if (n := sum(cell.verdict == v for cell in cells))),
        "",
    ]
    operators = _by_operator(cells)
    if len(operators) <= 1:
        return "\n".join(lines + _markdown_table("property", _grid(cells))) + "\n"
    lines += _markdown_table("operator", _grid(cells, lambda cell: cell.operator))
    for operator, own in operators.items():
        lines += ["", f"**{plain(operator)}**", "", *_markdown_table("property", _grid(own))]
    return "\n".join(lines) + "\n"


def _markdown_table(what: str, grid: Grid) -> list[str]:
    columns, rows, at = grid
    return [
        f"| {what} | " + " | ".join(f"{plain(backend)}<br>{plain(device)}" for backend, device in columns) + " |",
        "|---|" + "---|" * len(columns),
        *(f"| {plain(row)} | " + " | ".join(_summary(at(c, row)) or " " for c in columns) + " |" for row in rows),
    ]
