"""Judge a fault beside its honest twin, and ask the oracle only where they differ.

A fault and its twin are the same text but for a branch, so at most calls they return the same bits. Such a result is
as right as the twin's, and its oracle, which takes some hundred times as long as the call, need not be computed. What
else a property asks is asked as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from harness.judging import oracle
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.cell import FAIL, Cell
from spec.contract import TensorArg

_Key = tuple[str, str, Scenario, str, bool]


@dataclass
class _Seen:
    """The results of the twin, as digests, and the results of the fault that are not right."""

    of_twin: dict[_Key, set[bytes]] = field(default_factory=dict)
    wrong: set[_Key] = field(default_factory=set)


def judged_beside(fault: Subject, twin: Subject, property: Property) -> Cell | None:
    """The cell of the fault; None if it does not fail, or if the twin fails in the same place."""
    seen = _Seen()
    with _holding(lambda key, got, hold: seen.of_twin.setdefault(key, set()).add(_digest(got))):
        if judge(twin, property).verdict == FAIL:
            return None

    def differing(key: _Key, got: Tensor, hold: Callable[[], None]) -> None:
        if _digest(got) not in seen.of_twin.get(key, ()):
            seen.wrong.add(key)
            hold()
            seen.wrong.remove(key)

    with _holding(differing):
        cell = judge(fault, property)
    if cell.verdict != FAIL or not seen.wrong:
        return cell if cell.verdict == FAIL else None

    def there(key: _Key, got: Tensor, hold: Callable[[], None]) -> None:
        if key in seen.wrong:
            hold()

    with _holding(there):
        return None if judge(twin, property).verdict == FAIL else cell


class _Later:
    """Expected results that are computed when they are asked for."""

    #: Of the report's figures alone.
    precise = False

    def __init__(self, compute: Callable[[], oracle.Expected]) -> None:
        self._compute = compute

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compute(), name)


class _ComputedLater:
    """In place of the function that computes expected results. An object, because the judge watches its functions."""

    def __init__(self, expected: Callable[..., oracle.Expected]) -> None:
        self._expected = expected

    def __call__(self, *question: Any) -> Any:
        return _Later(lambda: self._expected(*question))


@contextmanager
def _holding(held: Callable[[_Key, Tensor, Callable[[], None]], object]) -> Iterator[None]:
    """In place of each comparison with the oracle call `held`, with a function that makes the comparison."""
    hold, expected = Tally.hold, oracle._expected

    def instead(
        tally: Tally,
        scenario: Scenario,
        measure: oracle.Expected,
        arg: TensorArg,
        got: Tensor,
        is_gradient: bool,
        **more: Any,
    ) -> None:
        key = (tally.subject.operator.title, tally.subject.dtype_name, scenario, arg.name, is_gradient)
        held(key, got, lambda: hold(tally, scenario, measure, arg, got, is_gradient, **more))

    Tally.hold, oracle._expected = instead, _ComputedLater(expected)  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Tally.hold, oracle._expected = hold, expected  # type: ignore[method-assign]


def _digest(tensor: Tensor) -> bytes:
    # A new tensor, since one of a single row may be contiguous with any strides.
    flat = tensor.detach().cpu().flatten().clone(memory_format=torch.contiguous_format)
    return blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode() + flat.view(torch.uint8).numpy().tobytes()).digest()
