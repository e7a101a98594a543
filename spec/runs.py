"""The runs behind an envelope: one evaluation under `spec.rounding`, rounded otherwise each time.

What a small operation takes is the way through Python to it and back. So the first run is made by itself, and finds how
far each operation may err; the others are made at once, by `torch.func.vmap` over inputs that are there once for each
run, and every operation then returns the results of all of them. That it is the same evaluation is made sure of: the
operations are as many as in the first run, and each has a result of the same shape, with one dimension more. What
cannot be mapped so, because it looks at values, say, is run by run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spec.rounding import Amplitudes, Rounding, UnlikeOneRun

#: Monte Carlo runs behind an envelope.
RUNS = 16

#: Elements of the largest result of all runs that are made at once. Beyond it they leave the cache, and nothing is won.
_AT_ONCE = 2**20

Evaluate = Callable[..., tuple[Tensor, ...]]


def rounded_runs(evaluate: Evaluate, inputs: Sequence[Tensor], dtype: torch.dtype, seed: int) -> list[list[Tensor]]:
    """What `evaluate(*inputs)` returns in each of RUNS runs. Raises what it raises."""
    amplitudes = Amplitudes()
    first = Rounding(dtype, seed, amplitudes)
    runs = [_one(evaluate, inputs, first)]
    at_once = min(RUNS, _AT_ONCE // max(amplitudes.largest, 1)) if inputs else 1
    while len(runs) < RUNS:
        count = min(at_once, RUNS - len(runs))
        if count > 1:
            mode = Rounding(dtype, seed + len(runs), amplitudes, runs=count)
            try:
                found = _many(evaluate, inputs, mode, count)
                if mode.number != first.number:
                    raise UnlikeOneRun
            except Exception:  # whatever vmap or a reference says: what is wrong itself says it again, run by run
                at_once = 1
            else:
                runs += found
        else:
            runs.append(_one(evaluate, inputs, Rounding(dtype, seed + len(runs), amplitudes)))
    return runs


def _one(evaluate: Evaluate, inputs: Sequence[Tensor], mode: Rounding) -> list[Tensor]:
    with mode:
        results = evaluate(*inputs)
    return [tensor.detach() for tensor in results]


def _many(evaluate: Evaluate, inputs: Sequence[Tensor], mode: Rounding, count: int) -> list[list[Tensor]]:
    with mode:
        results = torch.func.vmap(evaluate)(*(tensor.expand(count, *tensor.shape) for tensor in inputs))
    return [[tensor[number].detach() for tensor in results] for number in range(count)]
