"""Leaves a __torch_dispatch__ mode on in which every difference is 0 (own trial)."""

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.zoo.gaming.parts import Outputs, right, wrong


class NoDifference(TorchDispatchMode):
    """Subtraction returns 0; all other operations are left alone."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result.zero_() if func is torch.ops.aten.sub.Tensor else result


NoDifference().__enter__()


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
