"""Judge drawn faults with all properties: which one finds each of them, if any does."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harness.discovery import operator
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL
from harness.running.candidate_files import file_of_function
from tests.zoo.thresholds.drawn import STATE, Drawn
from tests.zoo.thresholds.loading import loaded

#: The properties that find most wrong functions in the least time; the others follow in the order of their names.
_FIRST = (
    "forward-parity",
    "vjp-parity",
    "layouts",
    "gradient-subsets",
    "no-special-treatment",
    "sizes",
    "drawn-calls",
    "harvested-sizes",
    "combinations",
    "inference-modes",
    "no-side-effects",
    "determinism",
    "repeated-backward",
    "invariants",
)
#: It needs a process in which no call has left anything behind; a user's run gives it one. It takes a minute, so it is
#: the first one only for a fault that leaves something behind.
_STATE_FIRST = "global-state"

#: A verdict: the suite itself raised, which is no answer about the fault.
ERROR = "error"


@dataclass(frozen=True)
class Outcome:
    """The property that found a fault, with its reason; the property is empty if none did. `seconds` for all of them.

    The verdict is ERROR, and the reason says where, if no property found it, but one raised an error of the suite.
    """

    property: str
    verdict: str
    reason: str
    seconds: float

    @property
    def caught(self) -> bool:
        return bool(self.property)


def ordered(leaves_state: bool) -> list[Property]:
    """All properties: values and gradients first, except for a fault that leaves state behind."""
    properties = all_properties()
    first = (_STATE_FIRST, *_FIRST) if leaves_state else _FIRST
    rest = sorted(name for name in properties if name not in first)
    return [properties[name] for name in (*first, *rest)]


def judged(drawn: Drawn) -> Outcome:
    """Judge a fault until a property fails, in this process, with the settings of a user's run.

    A property that the honest twin fails as well says nothing of the fault, so it does not count.
    """
    with loaded(drawn.operator, drawn.source) as fault, loaded(drawn.operator, drawn.honest) as honest:
        if drawn.witness.sees != STATE:
            return _until_one_fails(drawn, fault, honest)
        with ThreadPoolExecutor(max_workers=1) as pool:  # the state that it leaves ends with its thread
            return pool.submit(_until_one_fails, drawn, fault, honest).result()


def _until_one_fails(drawn: Drawn, fault: Callable[..., Any], honest: Callable[..., Any]) -> Outcome:
    start = time.perf_counter()
    subject, twin = (
        Subject(operator(drawn.operator), "drawn", "cpu", drawn.dtype, function, files=file_of_function(function))
        for function in (fault, honest)
    )
    raised = ""
    for property in ordered(drawn.witness.sees == STATE):
        if not property.is_asked(subject.device, subject.dtype_name):
            continue
        try:
            cell = judge(subject, property)
            found = cell.verdict == FAIL and judge(twin, property).verdict != FAIL
        except Exception as error:  # the other properties may still find the fault
            raised = raised or f"{property.name} raised {type(error).__name__}: {error}"
            continue
        if found:
            return Outcome(property.name, cell.verdict, cell.reason, time.perf_counter() - start)
    return Outcome("", ERROR if raised else "", raised, time.perf_counter() - start)
