"""One property of one subject, judged: a `Cell` of the report."""

from __future__ import annotations

import builtins
import functools
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from harness import tampering
from harness.errors import Failure, NoEvidence, NotApplicable
from harness.reproduce import script
from harness.scenario import Scenario
from harness.subject import CANDIDATE_ERRORS, Subject, told

PASS, FAIL, DECLARED, NO_EVIDENCE, NOT_RUN = VERDICTS = ("pass", "fail", "declared", "no-evidence", "not-run")


#: Where one word must stand for several cells, or two runs disagree, the first of these that occurs.
WORST_FIRST = (FAIL, NO_EVIDENCE, DECLARED, PASS, NOT_RUN)


@dataclass(frozen=True)
class Property:
    """Something that every implementation owes.

    `check(subject)` returns figures for the report. It raises Failure where the property does not hold, NoEvidence
    where it could not tell, NotApplicable where it says nothing about this subject. What is `large` takes most of a
    GPU's memory: of a run's cells those are judged first, by one worker, while the others hold little yet.
    """

    name: str
    claim: str
    check: Callable[[Subject], dict[str, Any]]
    large: bool = False


@dataclass(frozen=True)
class Cell:
    """One row of the report."""

    operator: str
    backend: str
    device: str
    dtype: str
    property: str
    verdict: str
    reason: str = ""
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @builtins.property
    def key(self) -> tuple[str, ...]:
        """What the cell is about."""
        return (self.operator, self.backend, self.device, self.dtype, self.property)

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict was {self.verdict!r}, but should be one of {', '.join(VERDICTS)}")
        if self.verdict != PASS and not self.reason:
            raise ValueError(f"a cell with the verdict {self.verdict!r} needs a reason")


_trusted: dict[tuple[str, str], tuple[Any, Any]] = {}


def bind() -> None:
    """Remember what candidates are judged with. Call it before the first of them is imported."""
    _trusted.update(tampering.snapshot())


def judge(subject: Subject, property: Property) -> Cell:
    """Run the property's check and turn what comes of it into a cell. Only a fault of the harness itself escapes."""
    if not _trusted:
        bind()
    start = time.perf_counter()
    verdict, reason, figures = _verdict(subject, property)
    replaced = tampering.undo(_trusted)
    if replaced:
        verdict, figures = FAIL, {}
        reason = f"the candidate replaced {', '.join(replaced[:5])}, with which it is judged, and should leave it alone"
    declaration = subject.declaration(property.name)
    if declaration is not None:
        if verdict == PASS:
            verdict, reason = (
                FAIL,
                (
                    f"the backend declares that it does not hold {property.name} ({declaration.reason}), but it does: "
                    "remove the declaration"
                ),
            )
        elif verdict == FAIL:
            figures = {**figures, "seen": reason}
            verdict, reason = DECLARED, declaration.reason
    return Cell(
        operator=subject.operator.name,
        backend=subject.backend,
        device=subject.device,
        dtype=subject.dtype_name,
        property=property.name,
        verdict=verdict,
        reason=reason,
        figures=figures,
        seconds=round(time.perf_counter() - start, 4),
    )


def _verdict(subject: Subject, property: Property) -> tuple[str, str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    lacks: dict[str, str] = {}
    unasked: dict[str, str] = {}
    try:
        with torch.random.fork_rng(devices=[]):
            for form in subject.operator.every_form():
                now = subject.in_form(form)
                try:
                    found[form.title] = property.check(now)
                except NoEvidence as lack:
                    lacks[form.title] = str(lack)
                except NotApplicable as why:
                    unasked[form.title] = str(why)
    except Failure as failure:
        if isinstance(failure.scenario, Scenario):
            return FAIL, str(failure), {"reproducer": script(now, failure.scenario, str(failure))}
        return FAIL, str(failure), {"reproducer": failure.script} if failure.script else {}
    except CANDIDATE_ERRORS as error:
        if not _raised_by_candidate(error, subject):
            raise
        return FAIL, f"{property.name}: the candidate raised {told(error)}, where it should not", {}
    if lacks:
        return NO_EVIDENCE, _of_forms(lacks), {}
    if not found:
        return NOT_RUN, _of_forms(unasked), {}
    return PASS, "", _merged(found, unasked)


def _of_forms(reasons: dict[str, str]) -> str:
    """One reason as it is; several with the forms that they are of."""
    different = dict.fromkeys(reasons.values())
    if len(different) == 1:
        return next(iter(different))
    return "; ".join(f"{title}: {reason}" for title, reason in reasons.items())


def _merged(found: dict[str, dict[str, Any]], unasked: dict[str, str]) -> dict[str, Any]:
    """The figures of all forms, with the tightest fit and the number of scenarios of them all."""
    if len(found) == 1 and not unasked:
        return next(iter(found.values()))
    merged: dict[str, Any] = {"forms": found, **({"not asked of": unasked} if unasked else {})}
    worst = [figures["worst"] for figures in found.values() if "worst" in figures]
    if worst:
        merged["worst"] = max(worst, key=lambda figure: figure["used"])
    for count in ("scenarios", "beyond_float64"):
        counts = [figures[count] for figures in found.values() if count in figures]
        if counts:
            merged[count] = sum(counts)
    return merged


def _raised_by_candidate(error: BaseException, subject: Subject) -> bool:
    """Whether the candidate's code is on the stack: an error of ours must never be booked as a fault of theirs."""
    function = subject.function
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return code in frames if code is not None else False
