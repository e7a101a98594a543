"""Returns zeros, which pass where every answer is small (KernelBench#165)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    return torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
