"""bias_gelu in torch operations, in float32 for half types."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from backends.base import PythonFunction, check_arguments
from bias_gelu.contract import OPERATOR


def bias_gelu(input: Tensor, bias: Tensor) -> Tensor:
    """gelu(input + bias), (batch, features).

    torch.nn.functional.gelu would be shorter, but on the CPU, in float32, its own erf has an error of a hundred
    roundings below -2, and the suite rejects it.
    """
    check_arguments(OPERATOR, input, bias)
    wide = torch.promote_types(input.dtype, torch.float32)
    z = input.to(wide) + bias.to(wide)
    return (z * (1 + torch.erf(z / math.sqrt(2))) / 2).to(input.dtype)


IMPLEMENTATION = PythonFunction(bias_gelu)
