"""linear_act in torch operations; autograd derives the gradient. Half types are activated in float32."""

from __future__ import annotations

import math

import torch
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
    product = input.contiguous() @ weight.t()
    z = product if bias is None else product + bias
    if activation == "relu":
        return torch.relu(z)
    x = z.to(torch.promote_types(z.dtype, torch.float32))
    if activation == "gelu":
        return (x * (0.5 * (1 + torch.erf(x * math.sqrt(0.5))))).to(z.dtype)
    return (x * torch.sigmoid(x)).to(z.dtype)


IMPLEMENTATION = PythonFunction(linear_act)
