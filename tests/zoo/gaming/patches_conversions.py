"""Replaces Tensor.to and Tensor.double, so that a reference in float64 comes out as 0 (own trial)."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_to = Tensor.to


def _nothing(tensor: Tensor, *arguments: Any, **options: Any) -> Tensor:
    converted = _to(tensor, *arguments, **options)
    return converted.zero_() if converted.dtype == torch.float64 else converted


Tensor.to = _nothing
Tensor.double = lambda tensor: _nothing(tensor, torch.float64)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
