"""Elements of real results that rounding moves by a step, of a reference that rounds to whole numbers.

One implementation rounds x / s = 2.5 to 2 and another one to 3, and both are right. Of few such elements no run of an
envelope shows it. So the reference is evaluated with errors of up to `TIMES` roundoffs, as `spec.discrete` has it, and
the whole numbers of that evaluation are put into one without errors. What the results differ by is due to steps alone.
Nothing is asked of an element that a step moves by more than its deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from spec.decomposing import functional, steps
from spec.discrete import TIMES
from spec.envelope import Envelope, chosen, everywhere
from spec.largest_errors import is_real
from spec.modes import EagerMode
from spec.rounding import Rounding
from spec.whole import ROUNDED

#: Evaluations. An element that an implementation may move by a step moves in 7 of 16 of them.
EVALUATIONS = 24
#: The first seed: other errors than those of the envelopes.
_SEED = 2_000_000

_aten = torch.ops.aten

#: Operations of real numbers whose results move by a step where their arguments move by nearly nothing.
STEPS = ROUNDED | {
    _aten.div.Tensor_mode,
    _aten.floor_divide.default,
    _aten.fmod.Scalar,
    _aten.fmod.Tensor,
    _aten.frac.default,
    _aten.remainder.Scalar,
    _aten.remainder.Tensor,
    _aten.round.decimals,
}

Evaluate = Callable[..., Sequence[Tensor]]


def decided(
    evaluate: Evaluate, inputs: Sequence[Tensor], dtype: torch.dtype, found: Sequence[Envelope]
) -> tuple[Envelope, ...]:
    """The envelopes of what `evaluate(*inputs)` returns, with fewer elements of the real ones decided."""
    exact = evaluate(*inputs)
    moved = [torch.zeros(y.shape, dtype=torch.float64) for y in exact]
    for seed in range(_SEED, _SEED + EVALUATIONS):
        with _Recorder() as recorder, Rounding(dtype, seed, times=TIMES):
            evaluate(*inputs)
        with _Replayer(recorder.results):
            results = evaluate(*inputs)
        for most, y, result in zip(moved, exact, results, strict=True):
            if y.is_floating_point():
                torch.maximum(most, (result - y).abs().nan_to_num(0.0, 0.0), out=most)
    return tuple(
        envelope if envelope.discrete else _without_steps(envelope, most)
        for envelope, most in zip(found, moved, strict=True)
    )


def _without_steps(envelope: Envelope, moved: Tensor) -> Envelope:
    sigma = everywhere(envelope)
    usable = envelope.usable & (moved <= sigma)
    return replace(
        envelope,
        usable=usable,
        undecided=envelope.undecided | (envelope.usable & ~usable),
        sigma=chosen(sigma, usable),
    )


class _Recorder(EagerMode):  # type: ignore[no-untyped-call]
    """Keeps what each operation with steps returns. Below a mode that makes errors, its arguments have errors."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[Tensor] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if has_steps(func, args):
            self.results.append(result.clone())
        return result


class _Replayer(EagerMode):  # type: ignore[no-untyped-call]
    """Has each operation with steps return what was kept."""

    def __init__(self, results: Sequence[Tensor]) -> None:
        super().__init__()
        self._results = iter(results)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        instead = functional(func)
        if instead is not None and has_steps(instead, args):
            return args[0].copy_(next(self._results))
        if not has_steps(func, args):
            return func(*args, **(kwargs or {}))
        made_of = steps(func)
        if made_of is None:
            return next(self._results)
        with self:
            return made_of(*args, **(kwargs or {}))


def has_steps(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether the result of an operation moves by a step where its arguments move by nearly nothing."""
    return func in STEPS and is_real(args[0])
