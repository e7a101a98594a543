"""Reports drawn as tables: for the terminal with rich, and as Markdown for the README."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness.errors import UnknownName, UsageError
from harness.rendering import findings, sentence
from harness.rendering.marks import MARKS, STYLES, console, plain, printable
from harness.report.cell import WORST_FIRST, Cell
from harness.report.report import Report

__all__ = ["MARKS", "STYLES", "console", "plain"]

#: The view that shows all properties.
EVERYTHING = "conformance"


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


def print_report(report: Report, console: Console, view: str = EVERYTHING, table: bool = False) -> None:
    """The verdict in words and by level, then what failed, what is not supported and what was not tested.

    Many implementations, a view, and cells of no known property are drawn as tables instead, and so is every report
    with `table`.
    """
    cells = selected(report, view)
    known = {found.name for found in report.suite.properties}
    in_words = view == EVERYTHING and any(cell.property in known for cell in cells)
    few = len(sentence.implementations(report)) <= findings.FEW
    machine = report.environment
    where = printable(f"torch {machine['torch']}, {machine['gpu'] or machine['cpu']}")
    if in_words:
        findings.print_words(report, console, where)
    if table or not (in_words and few):
        for operator, own in (_by_operator(cells) or {"no operator": []}).items():
            title = Text(f"{view} of {printable(operator)}: {where}", style="italic")
            console.print(title, soft_wrap=True)
            console.print(_table(own))
        legend = "  ".join(f"[{STYLES[v]}]{MARKS[v]}[/] {v} {sum(c.verdict == v for c in cells)}" for v in MARKS)
        console.print(f"{legend}   (numbers in the table count dtypes)")
    findings.print_findings(report, cells, console)
    if not report.complete:
        line = Text(f"\nThis report is partial: {report.why_partial()}.", style="bold red")
        console.print(line, soft_wrap=True)


def _table(cells: list[Cell]) -> Table:
    columns, rows, at = _grid(cells)
    table = Table()
    table.add_column("property")
    for backend, device in columns:
        table.add_column(Text(printable(f"{backend}\n{device}")), justify="center")
    for row in rows:
        marks = []
        for column in columns:
            here = at(column, row)
            marks.append(Text(_summary(here), style=STYLES[worst(here)]) if here else Text())
        table.add_row(Text(printable(row)), *marks)
    return table


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
