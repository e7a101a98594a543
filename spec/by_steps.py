"""Activations that are x times a function of x, evaluated as that product, for the overflow of its gradient.

PyTorch has silu and its like as one operation, whose backward multiplies the cotangent by the slope. Autograd of
x * sigmoid(x) multiplies it by x first. Where x is large and negative, the slope is 0 and that product may overflow:
infinity times 0 is NaN. Both are right functions, and both are written.

Sources: the formulas in PyTorch's documentation of F.silu, F.gelu, F.mish and F.hardswish.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    if approximate == "tanh":
        return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def _mish(x: Tensor) -> Tensor:
    return x * torch.tanh(F.softplus(x))


def _hardswish(x: Tensor) -> Tensor:
    return x * F.relu6(x + 3) / 6


#: The functions of PyTorch that models call, and the product that each is.
_PRODUCTS: dict[Callable[..., Any], Callable[..., Tensor]] = {
    F.silu: _silu,
    F.gelu: _gelu,
    F.mish: _mish,
    F.hardswish: _hardswish,
}


class Products(TorchFunctionMode):
    """In this mode such an activation is a product, to autograd too. `used` says whether there was any.

    One that writes into its input stays as it is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.used = False

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        given = kwargs or {}
        product = _PRODUCTS.get(func)
        if product is None or given.get("inplace", False):
            return func(*args, **given)
        self.used = True
        return product(*args, **{name: value for name, value in given.items() if name != "inplace"})
