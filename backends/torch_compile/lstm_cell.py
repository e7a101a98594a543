"""The LSTM cell: torch operations under torch.compile, which fuses everything but the two products."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.lstm_cell import OPERATOR


def _forward(
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None,
    b_hh: Tensor | None,
) -> tuple[Tensor, Tensor]:
    gates = F.linear(input, w_ih, b_ih) + F.linear(old_h, w_hh, b_hh)
    in_gate, forget_gate, candidate, out_gate = gates.chunk(4, 1)
    new_cell = torch.sigmoid(forget_gate) * old_cell + torch.sigmoid(in_gate) * torch.tanh(candidate)
    return torch.sigmoid(out_gate) * torch.tanh(new_cell), new_cell


@by_rule(OPERATOR)
def lstm_cell(
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """(new_h, new_cell), each (batch, state_size)."""
    check_cell_arguments(OPERATOR, input, old_h, old_cell, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    new_h, new_cell = compiled(_forward)(input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh)
    return new_h, new_cell


IMPLEMENTATION = PythonFunction(lstm_cell)
