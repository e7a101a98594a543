"""LLTM in plain torch. Autograd records each operation and derives the backward pass, to any order."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.lltm import OPERATOR


@by_rule(OPERATOR)
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell: (new_h, new_cell), each (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)  # (batch, 3*state_size)
    input_gate, output_gate, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + F.elu(candidate) * torch.sigmoid(input_gate)
    new_h = torch.tanh(new_cell) * torch.sigmoid(output_gate)
    return new_h, new_cell


IMPLEMENTATION = PythonFunction(lltm)
