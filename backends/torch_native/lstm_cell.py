"""The LSTM cell as torch.lstm_cell, which torch.nn.LSTMCell calls."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.lstm_cell import OPERATOR


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
    # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
    states = [old_h.contiguous(), old_cell]
    new_h, new_cell = torch.lstm_cell(input.contiguous(), states, w_ih, w_hh, b_ih, b_hh)
    return new_h, new_cell


IMPLEMENTATION = PythonFunction(lstm_cell)
