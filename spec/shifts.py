"""Largest values that are subtracted before exp, and whose gradient is 0: an implementation may leave it out.

A softmax is exp(x - m) / sum(exp(x - m)) with the largest m of a row. It does not depend on m, so the gradient of m is
0. Autograd computes it all the same: it adds, to the gradient of the largest element, what the gradients of the row
add up to. That corrects the rounding error of the largest element. PyTorch's own softmax does not do so, nor does a
kernel. So where the gradient is the same without that of the largest values, it is left out in half of the runs behind
an envelope.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from spec.formulas import either

_LARGEST: frozenset[Callable[..., Any]] = frozenset(
    {torch.amax, Tensor.amax, torch.max, Tensor.max, torch.maximum, Tensor.maximum, torch.fmax, Tensor.fmax}
)
_SCATTERS: frozenset[Callable[..., Any]] = frozenset({torch.scatter_reduce, Tensor.scatter_reduce})


class Shifts(TorchFunctionMode):
    """In this mode the largest of some values have no gradient where `either` computes by its second formula.

    With `always`, they never have one. `used` says whether there were any.
    """

    def __init__(self, always: bool = False) -> None:
        super().__init__()
        self._always = always
        self.used = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        given = kwargs or {}
        result = func(*args, **given)
        if func in _LARGEST or (func in _SCATTERS and "amax" in (*args, *given.values())):
            self.used = True
            if isinstance(result, tuple):
                return type(result)((self._without_gradient(result[0]), *result[1:]))
            return self._without_gradient(result)
        return result

    def _without_gradient(self, largest: Tensor) -> Tensor:
        if self._always:
            return largest.detach()
        return either(lambda: largest, largest.detach)
