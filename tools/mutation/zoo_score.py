"""The hand-written faults and controls before the same court: what each fault costs to notice, and false alarms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import harness.judging.oracle
import harness.judging.scenario
from harness.judging.subject import Examples
from spec.contract import Draw
from tests.zoo import registry as zoo
from tools.mutation.court import Candidate, Hearing
from tools.mutation.sources import OPERATOR

#: Apart from one another by more than any seed that a scenario has.
_FURTHER_SEEDS = 7_919_017
#: Left to tests/meta/test_faults.py, which asks every control everything in every dtype.
TOO_DEAR = ("sizes",)


def faults(hearings: Sequence[Hearing]) -> list[tuple[Candidate, list[Hearing]]]:
    """Each fault, and the hearings in its own dtype."""
    return [
        (_candidate(fault.name, fault.function, fault.examples), [h for h in hearings if h.dtype == fault.dtype])
        for fault in zoo.faults(OPERATOR)
    ]


def controls(
    hearings: Sequence[Hearing], seed: int = 0, everything: bool = False
) -> list[tuple[Candidate, list[Hearing]]]:
    """Each control, and the hearings that it must come through: those of one dtype, in turn, or all."""
    dtypes = list(dict.fromkeys(hearing.dtype for hearing in hearings))
    found = []
    for place, control in enumerate(zoo.controls(OPERATOR)):
        own = [hearing for hearing in hearings if hearing.property not in control.gives_up]
        if not everything:
            dtype = dtypes[(place + seed) % len(dtypes)] if dtypes else None
            own = [hearing for hearing in own if hearing.dtype == dtype and hearing.property not in TOO_DEAR]
        found.append((_candidate(f"{control.name}, seed {seed}", control.function), own))
    return found


def reseed(seed: int) -> None:
    """Draw other values for every scenario from here on; the oracles are computed anew."""
    harness.judging.scenario.Draw = lambda own: Draw(own + seed * _FURTHER_SEEDS)  # type: ignore[attr-defined, assignment]
    harness.judging.oracle._expected.cache_clear()


def _candidate(name: str, function: Callable[..., Any], examples: int | None = None) -> Candidate:
    def load() -> Callable[..., Any]:
        return function

    return Candidate(name, "zoo", "cpu", load, examples=max(Examples().count, examples or 0))
