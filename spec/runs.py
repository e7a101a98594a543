"""The runs behind an envelope: one evaluation under `spec.rounding`, repeated with other roundings.

Most of the time of a small operation is spent in Python. So the first run is made alone, and finds how far each
operation may err. The other runs are made together, by `torch.func.vmap` over the inputs expanded once for each run:
every operation then returns the results of all runs. Two checks show that it is the same evaluation: there are as many
operations as in the first run, and each result has the same shape with one more dimension. Where these fail, the first
run is made under vmap too (`spec.mapped`). An evaluation that vmap cannot map, for example because it looks at values,
is made run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress

import torch
from torch import Tensor

from spec.amplitudes import Amplitudes, UnlikeOneRun
from spec.formulas import choosing
from spec.mapped import OfEachRun, TwoAlike
from spec.rounding import Rounding

#: Monte Carlo runs behind an envelope.
RUNS = 16

#: Elements of the largest result of all runs that are made at once. More do not fit the cache, and nothing is gained.
_AT_ONCE = 2**20

Evaluate = Callable[..., tuple[Tensor, ...]]


def rounded_runs(
    evaluate: Evaluate,
    inputs: Sequence[Tensor],
    dtype: torch.dtype,
    seed: int,
    count: int = RUNS,
    times: float = 1.0,
) -> list[list[Tensor]]:
    """The tensors that `evaluate(*inputs)` returns, for each of `count` runs. Raises what it raises.

    Every error is `times` as large as rounding makes it.
    """
    amplitudes = Amplitudes()
    first = Rounding(dtype, seed, amplitudes, times=times)
    runs = [_one(evaluate, inputs, first, seed)]
    most = min(count - 1, _AT_ONCE // max(amplitudes.largest, 1)) if inputs else 1

    def one(run: int) -> list[Tensor]:
        return _one(evaluate, inputs, Rounding(dtype, run, amplitudes, times=times), run)

    def others(amplitudes: Amplitudes, operations: int, mapped: bool = False) -> list[list[Tensor]]:
        found: list[list[Tensor]] = []
        for begin in range(seed + 1, seed + count, most):
            together = min(most, seed + count - begin)
            if together == 1:
                found.append(one(begin))
                break
            mode = Rounding(dtype, begin, amplitudes, runs=together, times=times)
            found += _many(evaluate, inputs, mode, begin, together, mapped)
            if mode.number != operations:
                raise UnlikeOneRun
        return found

    if most > 1:
        with suppress(Exception):  # from vmap or a reference: an error of the reference itself is raised again below
            return runs + others(amplitudes, first.number)
        with suppress(Exception):
            amplitudes_mapped = Amplitudes()
            alone = Rounding(dtype, seed, amplitudes_mapped, times=times)
            found = _many(evaluate, inputs, alone, seed, 1, mapped=True)
            _many(evaluate, inputs, TwoAlike(dtype, amplitudes_mapped), 0, 2, mapped=True)
            return found + others(amplitudes_mapped, alone.number, mapped=True)
    return runs + [one(run) for run in range(seed + 1, seed + count)]


def _one(evaluate: Evaluate, inputs: Sequence[Tensor], mode: Rounding, seed: int) -> list[Tensor]:
    with choosing(_second(seed, 1)[0]), mode:
        results = evaluate(*inputs)
    return [tensor.detach() for tensor in results]


def _many(
    evaluate: Evaluate, inputs: Sequence[Tensor], mode: Rounding, seed: int, count: int, mapped: bool = False
) -> list[list[Tensor]]:
    def chosen(second: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        with choosing(second), OfEachRun(second) if mapped else nullcontext():
            return evaluate(*given)

    with mode:
        expanded = (tensor.expand(count, *tensor.shape) for tensor in inputs)
        results = torch.func.vmap(chosen)(_second(seed, count), *expanded)
    return [[tensor[number].detach() for tensor in results] for number in range(count)]


def _second(seed: int, count: int) -> Tensor:
    """Whether each run computes by the second of two formulas; odd seeds are for other errors (`spec.noise`)."""
    return torch.arange(seed, seed + count) & 2 != 0
