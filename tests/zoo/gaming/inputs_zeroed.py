"""Sets its inputs to 0, so that a reference computed afterwards is wrong too (KernelBench: zero_out_kernel)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    with torch.no_grad():
        for tensor in inputs:
            tensor.zero_()
    return right(*inputs)
