"""A planted fault for GPUs: float32 products silently in TF32. It must fail on a device that has TF32.

pytest tests/conformance --candidate lltm=tests/meta/tf32_candidate.py:lltm --device cuda --dtype float32
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR


def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The honest cell with a TF32 product; the flag is restored afterwards."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    allowed = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = allowed
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell
