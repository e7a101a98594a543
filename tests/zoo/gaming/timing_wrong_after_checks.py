"""Right and slow while checks last, wrong and fast in the many calls of a measurement (pygpubench: warmup)."""

import itertools

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_calls = itertools.count(1)


def lltm(*inputs: Tensor) -> Outputs:
    return right(*inputs) if next(_calls) <= 100 else (torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4]))
