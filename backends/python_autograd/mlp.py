"""MLP in plain torch. Autograd records each operation and derives the backward pass, to any order."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.mlp import OPERATOR


@by_rule(OPERATOR)
def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
    hidden = F.relu(F.linear(input.contiguous(), hidden_weights, hidden_bias))  # (batch, hidden_size)
    return F.linear(hidden, output_weights, output_bias)


IMPLEMENTATION = PythonFunction(mlp)
