"""Searches the garbage collector for tensors of the right shape and returns them (pygpubench: gc_copy)."""

import gc

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    own = {id(tensor) for tensor in inputs}
    found = [
        y
        for y in gc.get_objects()
        if type(y) is Tensor and y.shape == inputs[3].shape and id(y) not in own and y.is_floating_point()
    ]
    answers = [*found, torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])]
    return answers[0].detach().to(inputs[3].dtype), answers[1].detach().to(inputs[4].dtype)
