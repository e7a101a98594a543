"""The GRU cell: torch operations under torch.compile, which fuses everything but the two products."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.gru_cell import OPERATOR


def _forward(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    a_r, a_z, a_n = F.linear(input, w_ih, b_ih).chunk(3, 1)
    s_r, s_z, s_n = F.linear(old_h, w_hh, b_hh).chunk(3, 1)
    candidate = torch.tanh(a_n + torch.sigmoid(a_r + s_r) * s_n)
    return candidate + torch.sigmoid(a_z + s_z) * (old_h - candidate)


@by_rule(OPERATOR)
def gru_cell(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """new_h, (batch, state_size)."""
    check_cell_arguments(OPERATOR, input, old_h, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    output: Tensor = compiled(_forward)(input, old_h, w_ih, w_hh, b_ih, b_hh)
    return output


IMPLEMENTATION = PythonFunction(gru_cell)
