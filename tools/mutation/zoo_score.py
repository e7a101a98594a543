"""The hand-written faults and controls, judged in the same way: which check notices each fault, and false alarms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import harness.judging.oracle
import harness.judging.scenario
from harness.judging.subject import Examples
from spec.contract import Draw
from tests.zoo import registry as zoo
from tools.mutation.judging import Candidate, Check
from tools.mutation.sources import OPERATOR

#: The distance between two seeds of this module, larger than any seed of a scenario.
_FURTHER_SEEDS = 7_919_017
#: Expensive properties. tests/meta/test_faults.py judges every control by them.
TOO_DEAR = ("sizes",)


def faults(checks: Sequence[Check]) -> list[tuple[Candidate, list[Check]]]:
    """Each fault, and the checks in its own dtype. The property that must notice it is asked last, if none of them."""
    found = []
    for fault in zoo.faults(OPERATOR):
        own = [check for check in checks if check.dtype == fault.dtype]
        if checks and fault.caught_by not in [check.property for check in own]:
            own.append(Check(fault.dtype, fault.caught_by, 1.0))
        found.append((_candidate(fault.name, fault.function, fault.examples), own))
    return found


def controls(checks: Sequence[Check], seed: int = 0, everything: bool = False) -> list[tuple[Candidate, list[Check]]]:
    """Each control, and the checks that it must pass: those of one dtype, in turn, or all."""
    dtypes = list(dict.fromkeys(check.dtype for check in checks))
    found = []
    for place, control in enumerate(zoo.controls(OPERATOR)):
        own = [check for check in checks if check.property not in control.gives_up]
        if not everything:
            dtype = dtypes[(place + seed) % len(dtypes)] if dtypes else None
            own = [check for check in own if check.dtype == dtype and check.property not in TOO_DEAR]
        found.append((_candidate(f"{control.name}, seed {seed}", control.function), own))
    return found


def reseed(seed: int) -> None:
    """Draw other values for every scenario from now on; the oracles are computed again."""
    harness.judging.scenario.Draw = lambda own: Draw(own + seed * _FURTHER_SEEDS)  # type: ignore[attr-defined, assignment]
    harness.judging.oracle._expected.cache_clear()


def _candidate(name: str, function: Callable[..., Any], examples: int | None = None) -> Candidate:
    def load() -> Callable[..., Any]:
        return function

    count = max(Examples().count, examples or 0)
    return Candidate(name, "zoo", "cpu", load, examples=count, files=zoo.file_of(function))
