"""Keeps a copy of each Parameter, which is stale after a step of the optimiser (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_kept: dict[int, tuple[Tensor, Tensor]] = {}


def lltm(*inputs: Tensor) -> Outputs:
    input, weights, *others = inputs
    if isinstance(weights, torch.nn.Parameter):
        copy = _kept.setdefault(id(weights), (weights, weights.detach().clone()))[1]
        weights = weights + (copy - weights).detach()
    return right(input, weights, *others)
