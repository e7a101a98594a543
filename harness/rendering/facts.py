"""Facts for every rendering: names in order, used allowances, and what is missing.

Untested cells are as prominent as tested ones. There are three kinds: cells that were not tested (`declared`,
`not-run`, `no-evidence`), each with its reason; combinations without a cell; and names that the suite knows but that
this run did not select.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from harness.report import figures
from harness.report.cell import AXES, DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, UNTESTED, Cell
from harness.report.report import Report

_WORDS = {FAIL: "failed", NO_EVIDENCE: "no evidence", DECLARED: "declared", PASS: "hold", NOT_RUN: "not run"}
#: Backends whose names fit into a line.
_NAMED = 12


@dataclass(frozen=True)
class Gap:
    """Cells that were not tested for the same reason. If `form` is not "", only that form of the operator was left out,
    and the cells pass in others."""

    verdict: str
    reason: str
    cells: tuple[Cell, ...]
    form: str = ""

    def names(self, axis: str) -> list[str]:
        """The operators, backends, ... of its cells."""
        return list(dict.fromkeys(str(getattr(cell, axis)) for cell in self.cells))


def axis(report: Report, name: str, cells: Iterable[Cell] | None = None) -> list[str]:
    """The operators, backends, ... of the report, or of some of its cells, in the order of the suite that made it."""
    return report.suite.ordered(name, (getattr(cell, name) for cell in (report.cells if cells is None else cells)))


def counted(report: Report) -> str:
    """`18 failed, 5 hold, 4 not run`."""
    return ", ".join(f"{report.count(verdict)} {word}" for verdict, word in _WORDS.items() if report.count(verdict))


def judged(report: Report) -> str:
    """The judged backends by name: `aten-cpp, my_lltm`; "" without cells."""
    names = axis(report, "backend")
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def place(report: Report) -> str:
    """The machine and the software, in a line."""
    machine = report.environment
    return f"{machine['gpu'] or machine['cpu']}, torch {machine['torch']}, Python {machine['python']}"


def commit(report: Report) -> str:
    """The commit of the suite, and whether its files were those of the commit."""
    name = report.environment["commit"]
    if name is None:
        return "unknown commit"
    state = report.environment.get("dirty")
    return f"{name.split()[-1][:12]}" + {True: ", with local changes", None: ", perhaps with local changes"}.get(
        state, ""
    )


def share_words(share: float) -> str:
    """`44%`, and for large shares `342 times`."""
    return f"{100 * share:.0f}%" if share < 9.995 else f"{share:.3g} times"


def failures(cells: Iterable[Cell]) -> list[Cell]:
    """Failed cells: those with a reproducer first, and among these, and among the rest, wrong values first."""
    plain = ("forward-parity", "vjp-parity")

    def rank(cell: Cell) -> tuple[bool, int, tuple[str, ...]]:
        first = plain.index(cell.property) if cell.property in plain else len(plain)
        return "reproducer" not in cell.figures, first, cell.key

    return sorted((cell for cell in cells if cell.verdict == FAIL), key=rank)


def gaps(cells: Iterable[Cell]) -> list[Gap]:
    """The cells that were not tested, grouped by verdict, form and reason."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.verdict in UNTESTED:
            found.setdefault((cell.verdict, "", cell.reason), []).append(cell)
        for form, why in figures.unasked(cell).items():
            found.setdefault((NOT_RUN, form, why), []).append(cell)
    ordered = sorted(found.items(), key=lambda item: (UNTESTED.index(item[0][0]), bool(item[0][1]), -len(item[1])))
    return [Gap(verdict, reason, tuple(which), form) for (verdict, form, reason), which in ordered]


@dataclass(frozen=True)
class Untouched:
    """Lines of an implementation that no call reached: a sentence for each file, and the lines."""

    cell: Cell
    sentences: tuple[str, ...]
    lines: tuple[figures.Unreached, ...]

    def name(self) -> str:
        """`lltm / mine on cpu`."""
        return f"{self.cell.operator} / {self.cell.backend} on {self.cell.device}"


def untouched(cells: Iterable[Cell]) -> list[Untouched]:
    """What no call reached, cell by cell. A failed cell, which stopped early, is left out."""
    found = [(cell, figures.unreached(cell)) for cell in cells if cell.verdict == PASS]
    return [Untouched(cell, tuple(_by_file(lines)), tuple(lines)) for cell, lines in found if lines]


def _by_file(lines: Sequence[figures.Unreached]) -> Iterator[str]:
    """`3 lines of kernel.py were reached by no call: 41, 57-58`, and the conditions that were always true."""
    for file in dict.fromkeys(line.file for line in lines):
        for always in (False, True):
            numbers = [line.line for line in lines if line.file == file and line.always is always]
            many = len(numbers) > 1
            if numbers and always:
                what = f"{len(numbers)} conditions" if many else "1 condition"
                yield f"{what} of {file} {'were' if many else 'was'} true in every call: {ranges(numbers)}"
            elif numbers:
                what = f"{len(numbers)} lines" if many else "1 line"
                yield f"{what} of {file} {'were' if many else 'was'} reached by no call: {ranges(numbers)}"


def ranges(numbers: Iterable[int]) -> str:
    """`3-9, 12`."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(one) if one == last else f"{one}-{last}" for one, last in ranges)


def never_asked(report: Report) -> dict[str, list[str]]:
    """Names that the suite knew and that no cell of the report has, by axis."""
    found = {}
    for name in AXES:
        there = {getattr(cell, name) for cell in report.cells}
        missing = [value for value in report.suite.names(name) if value not in there]
        if missing:
            found[name] = missing
    return found


def holes(cells: Sequence[Cell]) -> int:
    """How many combinations of the report's own names have no cell."""
    places = Counter(operator for operator, *_ in {cell.key[:4] for cell in cells})
    properties = Counter(operator for operator, _ in {(cell.operator, cell.property) for cell in cells})
    return sum(count * properties[operator] for operator, count in places.items()) - len(cells)
