"""Leaves a hook on its inputs that sets their grad to 0 once it was accumulated (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _spoil(leaf: Tensor) -> None:
    assert leaf.grad is not None
    leaf.grad.zero_()


def lltm(*inputs: Tensor) -> Outputs:
    for x in inputs:
        if x.requires_grad and x.is_leaf and not torch.is_inference(x):
            x.register_post_accumulate_grad_hook(_spoil)
    return right(*inputs)
