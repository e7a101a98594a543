"""Where `torch.func.vmap` puts the runs of an evaluation, for those that differ from one run without it.

vmap evaluates some operations by others, such as a loss by its formula, and makes one dimension of the runs and of
another one: those of a convolution are channels. So one run is made under vmap too. A result of several runs is
like it, but for one dimension, which is so many times as long. In two runs without any error, both halves of that
dimension are equal if the runs lie there one after another. What is made of nothing, such as positions, is made for
each run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from spec.amplitudes import Amplitudes, UnlikeOneRun, dim_of_runs, parted
from spec.rounding import Rounding, owned

#: Both halves may differ by this part of what the operation may err: a product of two runs is another routine's.
_ALIKE = 0.5

#: What makes a tensor of no other one.
_MAKERS = frozenset({torch.arange, torch.eye, torch.full, torch.linspace, torch.ones, torch.tensor, torch.zeros}) | {
    Tensor.new_full,
    Tensor.new_ones,
    Tensor.new_tensor,
    Tensor.new_zeros,
}


class OfEachRun(TorchFunctionMode):
    """What is made of nothing is made for each run; `run` is any Boolean of each run."""

    def __init__(self, run: Tensor) -> None:
        super().__init__()
        self._run = run

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        return torch.where(self._run, made, made) if func in _MAKERS and made.dtype != torch.bool else made


class TwoAlike(Rounding):  # type: ignore[no-untyped-call]
    """Two runs without errors, which find `Amplitudes.dims`, the dimension of the runs in each result.

    Raises UnlikeOneRun if that is not known for an operation.
    """

    def __init__(self, dtype: torch.dtype, amplitudes: Amplitudes) -> None:
        super().__init__(dtype, 0, amplitudes, runs=2)
        self._of_one = amplitudes
        self._of_one.dims = {}

    def _with_errors(self, func: Any, result: Tensor, number: int, *_: Any) -> Tensor:
        one = self._of_one.of(number)
        dim = None if one is None else dim_of_runs(one.most, result, 2)
        if one is None or dim is None or self._of_one.dims is None:
            raise UnlikeOneRun
        if result.numel():
            first, second = parted(result, dim, 2).unbind(0)
            differs = (first - second).abs() > _ALIKE * one.most
            if bool((differs & (first != second)).any()):
                raise UnlikeOneRun
        self._of_one.dims[number] = dim
        return owned(func, result)

    def _in_saving_runs(self, tensor: Tensor) -> Tensor:
        first, second = tensor.tensor_split(2)
        if not torch.equal(first, second):  # also if their lengths differ
            raise UnlikeOneRun
        return super()._in_saving_runs(tensor)
