"""Merge reports of one run's shards, or of several runs, into one that hides no failure and no missing cell.

Two reports may hold the same cell only if the verdicts agree or one of them is `not-run`. Otherwise a run that is
repeated until it passes would count as a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from harness.errors import UsageError
from harness.report.cell import NOT_RUN, Cell
from harness.report.levels import LEVELS
from harness.report.parts import is_part, joined
from harness.report.report import SAME, Report, one_each
from harness.report.shards import RunPlan, numbers

#: A report and the name of the file that it is from.
Named = tuple[str, Report]


def merge(named: Sequence[Named], any_cpu: bool = False) -> Report:
    """One report of these; `complete` only if every shard is there and finished.

    It requires the highest level that one of them required. `any_cpu` allows shards from machines with different
    processors; the merged report then names all of them.
    Raises UsageError for reports that cannot be merged or that contradict each other.
    """
    named = [(name, _counted(report)) for name, report in named]
    for (first, one), (second, other) in combinations(named, 2):
        _require_compatible(first, one, second, other, any_cpu)
        _require_agreement(first, one, second, other)
    reports = [report for _, report in named]
    cells = one_each(joined(cell for report in reports for cell in report.cells))
    plan = _joined([report.plan for report in reports if report.plan is not None]) if _sharded(named) else None
    if plan is not None:  # a cell of parts was asked of each shard
        plan = replace(plan, asked=plan.asked - sum(len(report.cells) for report in reports) + len(cells))
    complete = all(report.complete for report in reports) if plan is None else not plan.missing
    if len(reports) == 1:
        plan = reports[0].plan
    strictest = max((report.required for report in reports), key=LEVELS.index)
    return Report(_environment(reports), complete, cells, plan, reports[0].suite, strictest)


def _counted(report: Report) -> Report:
    """The report, which does not call itself complete if it has fewer cells than its run was asked for."""
    if report.plan is None or len(report.cells) >= report.plan.asked:
        return report
    return replace(report, complete=False, plan=replace(report.plan, finished=()))


def _sharded(named: Sequence[Named]) -> bool:
    return all(report.plan is not None and report.plan.shards > 1 for _, report in named)


def _require_compatible(first: str, one: Report, second: str, other: Report, any_cpu: bool) -> None:
    """Raise UsageError unless machine and suite are the same and, for shards, the run too."""
    for fact in SAME:
        was, now = one.environment.get(fact), other.environment.get(fact)
        if was != now and not (any_cpu and fact == "cpu"):
            hint = "; --any-cpu lets processors differ" if fact == "cpu" else ""
            raise UsageError(f"{first} and {second} cannot be merged: {fact} was {was!r} and {now!r}{hint}")
    _require_same_candidates(first, one, second, other)
    plans = [report.plan or RunPlan("", "") for report in (one, other)]
    if plans[0].sources and plans[1].sources and plans[0].sources != plans[1].sources:
        raise UsageError(f"{first} and {second} cannot be merged: the files of the suite differ between them")
    if plans[0].shards == plans[1].shards == 1:
        return
    if plans[0].shards != plans[1].shards:
        said = [plan.in_words() or "no shard" for plan in plans]
        raise UsageError(f"{first} and {second} cannot be merged: the one is {said[0]}, the other {said[1]}")
    if plans[0].digest != plans[1].digest:
        raise UsageError(
            f"{first} and {second} cannot be merged: they are shards of different runs; run each with the same options"
        )
    twice = sorted(set(plans[0].begun) & set(plans[1].begun))
    if twice:
        raise UsageError(
            f"{first} and {second} cannot be merged: both have shard {numbers(twice)}, and either may be right"
        )


def _require_same_candidates(first: str, one: Report, second: str, other: Report) -> None:
    """Raise UsageError if a name means two functions. Their paths may differ, as on two machines."""
    before, after = (report.environment.get("candidates", {}) for report in (one, other))
    for name in before.keys() & after.keys():
        was, now = before[name], after[name]
        if was["sha256"] != now["sha256"]:
            raise UsageError(
                f"{first} and {second} cannot be merged: {name} is {_file(was)} in the one and {_file(now)} in the "
                "other; rename one of the functions, or judge both reports' cells with the same file"
            )


def _file(candidate: dict[str, Any]) -> str:
    return f"{candidate['source'] or 'a function without a file'} (sha256 {str(candidate['sha256'])[:12]})"


def _require_agreement(first: str, one: Report, second: str, other: Report) -> None:
    """Raise UsageError if a cell has two different verdicts, neither of them `not-run`."""
    there = {cell.key: cell for cell in one.cells}
    wrong = [
        (there[cell.key], cell) for cell in other.cells if cell.key in there and _contradict(there[cell.key], cell)
    ]
    if wrong:
        was, now = wrong[0]
        more = f" (and {len(wrong) - 1} more cells)" if len(wrong) > 1 else ""
        raise UsageError(
            f"{first} and {second} contradict each other: {'/'.join(was.key)} is {was.verdict} in the one and "
            f"{now.verdict} in the other{more}; judge these cells again"
        )


def _contradict(one: Cell, other: Cell) -> bool:
    if is_part(one) or is_part(other):
        return False
    return one.verdict != other.verdict and NOT_RUN not in (one.verdict, other.verdict)


def _joined(plans: Sequence[RunPlan]) -> RunPlan:
    def union(name: str) -> tuple[int, ...]:
        return tuple(sorted({number for plan in plans for number in getattr(plan, name)}))

    asked = sum(plan.asked for plan in plans)
    return replace(plans[0], begun=union("begun"), finished=union("finished"), asked=asked)


def _environment(reports: Sequence[Report]) -> dict[str, Any]:
    """The first report's with the candidates of all, and all that quick runs left out; `cpu` names all processors."""
    cpus = dict.fromkeys(str(report.environment.get("cpu")) for report in reports)
    found = dict(reports[0].environment)
    candidates = {name: file for report in reports for name, file in report.environment.get("candidates", {}).items()}
    if candidates:
        found["candidates"] = candidates
    if any("quick" in report.environment for report in reports):
        found["quick"] = list(dict.fromkeys(name for report in reports for name in report.environment.get("quick", ())))
    if len(cpus) > 1:
        found["cpu"] = " | ".join(cpus)
    return found
