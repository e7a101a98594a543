"""What a scoreboard shows, from records alone: operator x implementation x level x dtype, for each machine.

A record counts for an implementation if it tested something at every level that a function needs to be used at all
(`NEEDED`), and if at least `ENOUGH` of the cells have an answer: where the harness failed, nothing is known of the
implementation. Of several such records the newest counts that has at least `ENOUGH` of the cells of the fullest one,
and no other: verdicts of two records are never mixed. Candidates are left out, since a scoreboard is of what is
published.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from harness.rendering import facts
from harness.rendering.speedups import Speedup, speedups
from harness.report import figures
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, LEVELS, SAFE, VALUES, counted, standings
from harness.report.report import Report

#: A record that tested nothing at one of these levels is a study of something, and no judgement of an implementation.
NEEDED = (VALUES, GRADIENTS, SAFE)
#: The share of the cells that need an answer; and of the fullest record's cells, for a newer record to count instead.
ENOUGH = 0.9

#: The name of a record's file, and what it holds.
NamedReport = tuple[str, Report]
NamedBench = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Mark:
    """A level, or a property, in one dtype. `error` is the largest error in units of its allowance, None if none was
    measured; `passed` of `tested` cells hold."""

    verdict: str
    error: float | None
    passed: int
    tested: int


#: What was not asked.
NOTHING = Mark(NOT_RUN, None, 0, 0)


@dataclass(frozen=True)
class JudgedBackend:
    """One operator in one backend on one device of one machine, as one record judged it."""

    operator: str
    backend: str
    device: str
    record: str
    report: Report
    cells: tuple[Cell, ...]
    speedups: tuple[Speedup, ...]

    @cached_property
    def counted(self) -> list[tuple[str, str, Cell]]:
        """The cells at their levels: see `levels.counted`."""
        return list(counted(self.cells, self.report.suite))

    @cached_property
    def dtypes(self) -> list[str]:
        """The dtypes in which it was asked."""
        return facts.axis(self.report, "dtype", self.cells)

    @cached_property
    def verdicts(self) -> dict[str, str]:
        """The verdict of each level over all dtypes."""
        return {standing.level: standing.verdict for standing in standings(self.cells, self.report.suite)}

    def reached(self, *verdicts: str) -> int:
        """How many levels, from the first on without a gap, have one of these verdicts."""
        found = [self.verdicts[level] in verdicts for level in LEVELS]
        return found.index(False) if False in found else len(LEVELS)

    @property
    def reach(self) -> str:
        """The levels that hold, in words, and how far it comes but for what it declares."""
        held, declared = self.reached(PASS), self.reached(PASS, DECLARED)
        if declared == held:
            return _up_to(held)
        return f"{_up_to(declared)}, but for what it declares"

    def asks(self, level: str, dtype: str = "") -> bool:
        """Whether the record has a cell at the level; and, if a dtype is given, any cell in it."""
        return any(at == level for at, _, _ in self.counted) and (not dtype or dtype in self.dtypes)

    def mark(self, level: str, dtype: str = "", property: str = "") -> Mark:
        """The mark of a level; of one dtype and of one property, if they are given."""
        found = [
            (verdict, cell)
            for at, verdict, cell in self.counted
            if at == level and dtype in ("", cell.dtype) and property in ("", cell.property)
        ]
        return _mark(found)


def _mark(found: Sequence[tuple[str, Cell]]) -> Mark:
    """The mark of cells with the verdict that they have at one level."""
    tested = [verdict for verdict, _ in found if verdict != NOT_RUN]
    # A cell that failed at another level has an error of that level, not of this one.
    own = [cell for verdict, cell in found if verdict == cell.verdict]
    errors = [error for cell in own if (error := figures.used(cell)) is not None]
    return Mark(worst(verdict for verdict, _ in found), max(errors, default=None), tested.count(PASS), len(tested))


def worst(verdicts: Iterable[str]) -> str:
    """The verdict of several cells; `not-run` of none."""
    there = set(verdicts)
    return next((verdict for verdict in (FAIL, NO_EVIDENCE, DECLARED, PASS) if verdict in there), NOT_RUN)


def _up_to(count: int) -> str:
    if count == 0:
        return "no level in every dtype"
    return "all five levels" if count == len(LEVELS) else f"up to {LEVELS[count - 1]}"


@dataclass(frozen=True)
class Left:
    """An implementation that was not judged on this machine, and why."""

    backend: str
    device: str
    verdict: str
    reason: str


@dataclass(frozen=True)
class Operator:
    """The implementations of one operator on one machine, and those that were not judged there."""

    name: str
    judged: tuple[JudgedBackend, ...]
    left: tuple[Left, ...]


@dataclass(frozen=True)
class Machine:
    """What was judged on one machine, by its GPU's name or, without one, its processor's."""

    name: str
    operators: tuple[Operator, ...]

    @property
    def slug(self) -> str:
        """The name in addresses."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def judged(self) -> list[JudgedBackend]:
        return [one for operator in self.operators for one in operator.judged]

    @property
    def dtypes(self) -> list[str]:
        """In the order of the suite of its first record."""
        there = {dtype for one in self.judged for dtype in one.dtypes}
        return self.judged[0].report.suite.ordered("dtype", there)

    @property
    def records(self) -> dict[str, Report]:
        """The records that count here, by name."""
        return dict(sorted((one.record, one.report) for one in self.judged))

    @property
    def benches(self) -> list[str]:
        """The bench records from which its speeds are."""
        return sorted({speedup.record for one in self.judged for speedup in one.speedups})


def machines(reports: Sequence[NamedReport], benches: Sequence[NamedBench]) -> tuple[Machine, ...]:
    """What the records show, GPUs first; a machine on which nothing was judged is left out."""
    found: dict[str, list[NamedReport]] = {}
    for name, report in reports:
        found.setdefault(_machine(report.environment), []).append((name, report))
    gpus = {_machine(report.environment) for _, report in reports if report.environment["gpu"]}
    drawn = []
    for machine in sorted(found, key=lambda name: (name not in gpus, name)):
        timed = [(name, bench) for name, bench in benches if _machine(bench["environment"]) == machine]
        operators = tuple(_operators(found[machine], timed))
        if any(operator.judged for operator in operators):
            drawn.append(Machine(machine, operators))
    return tuple(drawn)


def _machine(environment: dict[str, Any]) -> str:
    return str(environment["gpu"] or environment["cpu"])


def _operators(reports: Sequence[NamedReport], benches: Sequence[NamedBench]) -> Iterator[Operator]:
    there: dict[tuple[str, str, str], list[tuple[str, Report, list[Cell]]]] = {}
    for name, report in reports:
        own: dict[tuple[str, str, str], list[Cell]] = {}
        for cell in report.cells:
            if cell.backend in report.suite.backends:
                own.setdefault((cell.operator, cell.backend, cell.device), []).append(cell)
        for key, cells in own.items():
            there.setdefault(key, []).append((name, report, cells))
    order = max((report.suite for _, report in reports), key=lambda suite: len(suite.backends))
    for operator in sorted({key[0] for key in there}):
        backends = order.ordered("backend", (key[1] for key in there if key[0] == operator))
        keys = [key for backend in backends for key in sorted(there) if key[:2] == (operator, backend)]
        judged, left = [], []
        for key in keys:
            chosen = _counting(there[key])
            if chosen is None:
                left.append(_left(key, there[key]))
            else:
                name, report, cells = chosen
                judged.append(JudgedBackend(*key, name, report, tuple(cells), speedups(benches, *key)))
        if judged:
            yield Operator(operator, tuple(judged), tuple(left))


def _counting(records: Sequence[tuple[str, Report, list[Cell]]]) -> tuple[str, Report, list[Cell]] | None:
    """The record that counts for an implementation; None if none does."""
    able = [entry for entry in records if _judges(entry[1], entry[2])]
    most = max((_asked(cells) for _, _, cells in able), default=0)
    full = [entry for entry in able if _asked(entry[2]) >= ENOUGH * most]
    return max(full, key=lambda entry: (str(entry[1].environment.get("time") or ""), entry[0]), default=None)


def _asked(cells: Iterable[Cell]) -> int:
    return sum(cell.verdict != NOT_RUN for cell in cells)


def _judges(report: Report, cells: Sequence[Cell]) -> bool:
    """Whether the cells judge it: not all are declared, each level that is needed was asked, and most have answers."""
    levels = {level for level, verdict, _ in counted(cells, report.suite) if verdict != NOT_RUN}
    judged = any(cell.verdict not in (NOT_RUN, DECLARED) for cell in cells)
    return judged and levels.issuperset(NEEDED) and not _unanswered(cells)


def _unanswered(cells: Sequence[Cell]) -> list[Cell]:
    """The cells without an answer, if they are too many."""
    found = [cell for cell in cells if cell.verdict == NO_EVIDENCE]
    return found if len(found) > (1 - ENOUGH) * _asked(cells) else []


def _left(key: tuple[str, str, str], records: Sequence[tuple[str, Report, list[Cell]]]) -> Left:
    """Why an implementation was not judged: the reason that most cells of its fullest record give."""
    name, _, cells = max(records, key=lambda entry: _asked(entry[2]))
    unanswered = _unanswered(cells)
    if unanswered:
        said = f"{len(unanswered)} of {_asked(cells)} cells have no answer in {name}: {_common(unanswered)}"
        return Left(*key[1:], NO_EVIDENCE, said)
    without = [cell for cell in cells if cell.verdict in (NOT_RUN, DECLARED)]
    if not without:
        return Left(*key[1:], NOT_RUN, f"only {_subject(cells)} asked, which is a study and no judgement")
    return Left(*key[1:], worst(cell.verdict for cell in without), _common(without))


def _common(cells: Sequence[Cell]) -> str:
    """The reason that most of them give."""
    reasons = [cell.reason.splitlines()[0] for cell in cells]
    return max(dict.fromkeys(reasons), key=reasons.count)


def _subject(cells: Sequence[Cell]) -> str:
    """`forward-parity and vjp-parity were`: the properties of some cells, as a subject and its verb."""
    names = sorted({cell.property for cell in cells})
    return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'}"


def short(error: float | None) -> str:
    """An error in at most four characters: `0.82`, `37`, `1e6`."""
    if error is None:
        return ""
    if math.isinf(error) or error >= 1e300:
        return "∞"
    if error < 9.995:
        return f"{error:.2f}"
    return f"{error:.0f}" if error < 999.5 else f"{error:.0e}".replace("e+0", "e").replace("e+", "e")
