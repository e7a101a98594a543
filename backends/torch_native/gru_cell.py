"""The GRU cell as torch.gru_cell, which torch.nn.GRUCell calls."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.gru_cell import OPERATOR


@by_rule(OPERATOR)
def gru_cell(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """new_h, (batch, state_size)."""
    check_cell_arguments(OPERATOR, input, old_h, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
    return torch.gru_cell(input.contiguous(), old_h.contiguous(), w_ih, w_hh, b_ih, b_hh)


IMPLEMENTATION = PythonFunction(gru_cell)
