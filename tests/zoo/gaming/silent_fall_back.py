"""Its own kernel never runs; an exception leads to the library (KernelBench: check_code_bypass)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm_right(*inputs: Tensor) -> Outputs:
    """Right: it is eager PyTorch."""
    try:
        return torch.ops.kernels.lltm(*inputs)
    except (AttributeError, RuntimeError):
        return right(*inputs)
