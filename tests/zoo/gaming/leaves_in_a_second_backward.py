"""Ends the process where it is differentiated a second time, which it may refuse by an exception (own trial)."""

import os

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _leave(gradient: Tensor) -> Tensor:
    if torch.is_grad_enabled():
        os._exit(0)
    return gradient


def lltm(*inputs: Tensor) -> Outputs:
    new_h, new_cell = right(*inputs)
    for output in (new_h, new_cell):
        if output.requires_grad:
            output.register_hook(_leave)
    return new_h, new_cell
