"""Judge drawn faults with all properties: which one finds each of them, if any does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from harness.building.cache import expected_root
from harness.discovery import operator
from harness.judging import stored
from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.running.candidate_files import file_of_function
from tests.zoo.thresholds.drawn import STATE, Drawn
from tests.zoo.thresholds.loading import loaded
from tests.zoo.thresholds.screening import judged_beside

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
#: The properties that are likely to find a fault of a class, before those of `_FIRST`. The order decides how long a
#: fault takes, and which property finds it, but not whether one does. `global-state` needs a process in which no call
#: has left anything behind; a user's run gives it one. It takes a minute.
_FIRST_OF: Mapping[str, tuple[str, ...]] = {
    "aliasing": ("inference-modes", "combinations", "harvested-sizes"),
    "cotangents": ("vjp-parity", "layouts", "harvested-sizes"),
    "dtypes": ("harvested-sizes", "sizes", "combinations"),
    "guessed-layout": ("harvested-sizes", "combinations"),
    "modes": ("harvested-sizes", "gradient-subsets"),
    "other-sizes": ("harvested-sizes",),
    "pairs": ("combinations", "gradient-subsets"),
    "processor-state": ("global-state",),
    "race": ("determinism",),
    "rows": ("harvested-sizes",),
    "stale": ("inference-modes", "harvested-sizes"),
    "values": ("combinations", "harvested-sizes"),
}

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


def ordered(kind: str) -> list[Property]:
    """All properties, those first that are likely to find a fault of this class."""
    properties = all_properties()
    return [properties[name] for name in dict.fromkeys((*_FIRST_OF.get(kind, ()), *_FIRST, *sorted(properties)))]


def judged(drawn: Drawn) -> Outcome:
    """Judge a fault until a property fails, in this process, with the settings of a user's run.

    What the honest twin fails as well says nothing of the fault, so it does not count. Expected results are
    kept on disk, as in a user's run.
    """
    with (
        loaded(drawn.operator, drawn.source) as fault,
        loaded(drawn.operator, drawn.honest) as honest,
        stored.used(expected_root()),
    ):
        if drawn.witness.sees != STATE:
            return _until_one_fails(drawn, fault, honest)
        with ThreadPoolExecutor(max_workers=1) as pool:  # the state that it leaves ends with its thread
            work = copy_context().run
            return pool.submit(work, _until_one_fails, drawn, fault, honest).result()


def _until_one_fails(drawn: Drawn, fault: Callable[..., Any], honest: Callable[..., Any]) -> Outcome:
    start = time.perf_counter()
    subject, twin = (
        Subject(operator(drawn.operator), "drawn", "cpu", drawn.dtype, function, files=file_of_function(function))
        for function in (fault, honest)
    )
    raised = ""
    for property in ordered(drawn.kind):
        if not property.is_asked(subject.device, subject.dtype_name):
            continue
        try:
            cell = judged_beside(subject, twin, property)
        except Exception as error:  # the other properties may still find the fault
            raised = raised or f"{property.name} raised {type(error).__name__}: {error}"
            continue
        if cell is not None:
            return Outcome(property.name, cell.verdict, cell.reason, time.perf_counter() - start)
    return Outcome("", ERROR if raised else "", raised, time.perf_counter() - start)
