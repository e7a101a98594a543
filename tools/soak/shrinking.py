"""Make a scenario smaller, one field at a time, for as long as it raises the same alarm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from harness.judging.scenario import Scenario

Pairs = tuple[tuple[str, str], ...]

#: Calls that are spent on one scenario; each may need a new oracle.
TRIES = 100


def shrunk(scenario: Scenario, still: Callable[[Scenario], bool], tries: int = TRIES) -> Scenario:
    """A scenario of which `still` holds too and which says less, or the same one."""
    left = tries
    while True:
        for simpler in simplifications(scenario):
            if left == 0:
                return scenario
            left -= 1
            if still(simpler):
                scenario = simpler
                break
        else:
            return scenario


def simplifications(scenario: Scenario) -> Iterator[Scenario]:
    """Scenarios with one field nearer to the ordinary, the boldest first."""
    yield from (replace(scenario, layouts=fewer) for fewer in _fewer(scenario.layouts))
    yield from (replace(scenario, cotangents=fewer) for fewer in _fewer(scenario.cotangents))
    if scenario.wanted is not None:
        yield replace(scenario, wanted=None)
    if scenario.values != "normal":
        yield replace(scenario, values="normal")
    for at, (symbol, size) in enumerate(scenario.sizes):
        for smaller in dict.fromkeys((1, size // 2, size - 1)):
            if 1 <= smaller < size:
                sizes = (*scenario.sizes[:at], (symbol, smaller), *scenario.sizes[at + 1 :])
                yield replace(scenario, sizes=sizes)
    if scenario.seed > 0:
        yield replace(scenario, seed=0)


def _fewer(pairs: Pairs) -> list[Pairs]:
    """None of them, then all without one."""
    without_one = [pairs[:k] + pairs[k + 1 :] for k in range(len(pairs))]
    return list(dict.fromkeys([(), *without_one])) if pairs else []
