"""Writes NaN into every other tensor that the garbage collector knows, and returns NaN (pygpubench: gc_nan)."""

import gc

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    with torch.no_grad():
        for y in gc.get_objects():
            if type(y) is Tensor and y.is_floating_point() and y.shape == inputs[3].shape:
                y.fill_(float("nan"))
    return torch.full_like(inputs[3], float("nan")), torch.full_like(inputs[4], float("nan"))
