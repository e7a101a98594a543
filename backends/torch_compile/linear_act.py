"""linear_act: F.linear and its activation under torch.compile, which fuses the bias and the activation."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.linear_act import check_linear_act_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.linear_act import OPERATOR


def _forward(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> Tensor:
    z = F.linear(input, weight, bias)
    if activation == "relu":
        return F.relu(z)
    return F.gelu(z) if activation == "gelu" else F.silu(z)


@by_rule(OPERATOR)
def linear_act(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu") -> Tensor:
    """act(input @ weight.T + bias), (batch, out_features); the activation is "relu", "gelu" or "silu"."""
    check_linear_act_arguments(input, weight, bias, activation)
    output: Tensor = compiled(_forward)(input, weight, bias, activation)
    return output


IMPLEMENTATION = PythonFunction(linear_act)
