"""The GRU cell in torch operations; autograd derives the gradient."""

from __future__ import annotations

import torch
import torch.nn.functional as F
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
    of_input = F.linear(input.contiguous(), w_ih, b_ih).chunk(3, 1)
    of_state = F.linear(old_h.contiguous(), w_hh, b_hh).chunk(3, 1)
    reset, update = (torch.sigmoid(a + s) for a, s in zip(of_input[:2], of_state[:2], strict=True))
    candidate = torch.tanh(of_input[2] + reset * of_state[2])
    return candidate + update * (old_h - candidate)


IMPLEMENTATION = PythonFunction(gru_cell)
