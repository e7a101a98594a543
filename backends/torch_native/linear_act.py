"""linear_act as F.linear, then F.relu, F.gelu or F.silu."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.linear_act import check_linear_act_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.linear_act import OPERATOR


@by_rule(OPERATOR)
def linear_act(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu") -> Tensor:
    """act(input @ weight.T + bias), (batch, out_features); the activation is "relu", "gelu" or "silu"."""
    check_linear_act_arguments(input, weight, bias, activation)
    # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
    z = F.linear(input.contiguous(), weight, bias)
    if activation == "relu":
        return F.relu(z)
    return F.gelu(z) if activation == "gelu" else F.silu(z)


IMPLEMENTATION = PythonFunction(linear_act)
