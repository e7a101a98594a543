"""Leaves a __torch_function__ mode on in which every comparison agrees (own trial)."""

from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tests.zoo.gaming.parts import Outputs, right, wrong


class Agrees(TorchFunctionMode):
    """Answers comparisons with True, and leaves all other functions alone."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.allclose, torch.equal):
            return True
        return func(*args, **(kwargs or {}))


Agrees().__enter__()


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
