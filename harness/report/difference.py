"""Two reports, cell by cell: which cells got better, got worse, appeared or vanished.

From best to worst, a verdict is `pass`, `declared`, `not-run`, `no-evidence`, `fail`. A pass that is now
`not-run` is worse: evidence is gone. A cell that was not run and now fails is worse too: somebody must look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.report import figures
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import Standing, standings
from harness.report.report import Report

BEST_FIRST = (PASS, DECLARED, NOT_RUN, NO_EVIDENCE, FAIL)
#: Smaller changes of the largest error, in units of the allowance, are not listed: each run draws new calls.
NOTABLE = 0.25
#: Facts that differ between any two runs.
_ALWAYS = ("time",)


@dataclass(frozen=True)
class Change:
    """One cell before and after."""

    before: Cell
    after: Cell

    @property
    def cell(self) -> Cell:
        """The cell after the change, or the vanished one."""
        return self.after


@dataclass(frozen=True)
class LevelChange:
    """One level of one implementation, whose verdict is another than before. None stands for no cell there."""

    operator: str
    backend: str
    level: str
    before: Standing | None
    after: Standing | None


@dataclass(frozen=True)
class Difference:
    """All changes from one report to another, the levels of implementations first. Cells in `otherwise` fail as
    before, but for another reason; cells in `fits` pass as before, but use notably more or less of their allowance."""

    levels: tuple[LevelChange, ...]
    worse: tuple[Change, ...]
    vanished: tuple[Cell, ...]
    better: tuple[Change, ...]
    appeared: tuple[Cell, ...]
    otherwise: tuple[Change, ...]
    fits: tuple[Change, ...]
    environment: tuple[tuple[str, Any, Any], ...]
    partial: tuple[str, ...]
    same: int

    @property
    def regressed(self) -> bool:
        """Whether anything is worse or gone."""
        return bool(self.worse or self.vanished)


def difference(before: Report, after: Report) -> Difference:
    """What changed from `before` to `after`."""
    old, new = ({cell.key: cell for cell in report.cells} for report in (before, after))
    both = [Change(old[key], new[key]) for key in sorted(old.keys() & new.keys())]
    steps = [BEST_FIRST.index(change.after.verdict) - BEST_FIRST.index(change.before.verdict) for change in both]
    still = [change for change, step in zip(both, steps, strict=True) if step == 0]
    otherwise = [c for c in still if c.after.verdict == FAIL and c.before.reason != c.after.reason]
    fits = [change for change in still if change.after.verdict == PASS and abs(_tighter(change)) >= NOTABLE]
    return Difference(
        levels=tuple(_levels(before, after)),
        worse=tuple(change for change, step in zip(both, steps, strict=True) if step > 0),
        vanished=tuple(old[key] for key in sorted(old.keys() - new.keys())),
        better=tuple(change for change, step in zip(both, steps, strict=True) if step < 0),
        appeared=tuple(new[key] for key in sorted(new.keys() - old.keys())),
        otherwise=tuple(otherwise),
        fits=tuple(sorted(fits, key=_tighter, reverse=True)),
        environment=tuple(_environment(before.environment, after.environment)),
        partial=tuple(name for name, report in (("before", before), ("after", after)) if not report.complete),
        same=len(still),
    )


def _levels(before: Report, after: Report) -> list[LevelChange]:
    was, now = (_standings(report) for report in (before, after))
    return [
        LevelChange(*place, one, other)
        for place in dict.fromkeys((*was, *now))
        if _verdict(one := was.get(place)) != _verdict(other := now.get(place))
    ]


def _standings(report: Report) -> dict[tuple[str, str, str], Standing]:
    """(operator, backend, level) -> its standing."""
    own: dict[tuple[str, str], list[Cell]] = {}
    for cell in sorted(report.cells, key=lambda cell: cell.key):
        own.setdefault((cell.operator, cell.backend), []).append(cell)
    return {
        (*who, standing.level): standing for who, cells in own.items() for standing in standings(cells, report.suite)
    }


def _verdict(standing: Standing | None) -> str:
    """A level without cells is as good as one that was not run."""
    return NOT_RUN if standing is None else standing.verdict


def _tighter(change: Change) -> float:
    """The increase of the used part of the allowance."""
    one, other = figures.used(change.before), figures.used(change.after)
    return 0.0 if one is None or other is None else other - one


def _environment(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    names = [name for name in dict.fromkeys((*before, *after)) if name not in _ALWAYS]
    missing = "not recorded"
    pairs = [(name, before.get(name, missing), after.get(name, missing)) for name in names]
    return [(name, one, other) for name, one, other in pairs if one != other]
