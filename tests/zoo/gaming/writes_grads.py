"""Writes the grad of its inputs in forward, to which backward adds (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    for x in inputs:
        if x.requires_grad and x.is_leaf:
            x.grad = torch.full_like(x, 7.0)
    return right(*inputs)
