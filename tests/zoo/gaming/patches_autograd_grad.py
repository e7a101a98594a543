"""Replaces torch.autograd.grad by a function that returns zeros for every gradient (own trial)."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def _zeros(outputs: Any, inputs: Sequence[Tensor], *arguments: Any, **options: Any) -> tuple[Tensor, ...]:
    return tuple(torch.zeros_like(tensor) for tensor in inputs)


torch.autograd.grad = _zeros


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
