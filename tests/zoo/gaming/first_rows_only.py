"""Computes the first 8 rows and leaves the others 0 (KernelBench: partial_computation_hack)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    new_h, new_cell = right(*inputs)
    kept = (torch.arange(len(new_h)) < 8).to(new_h.dtype)[:, None]
    return new_h * kept, new_cell * kept
