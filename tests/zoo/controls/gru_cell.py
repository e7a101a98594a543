"""The GRU cell, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from spec.gru_cell import OPERATOR
from tests.zoo.honest.gru_cell import Optional, Unit
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Unit):
    """The honest cell, the base of every fault."""


@control
def everything_in_float64(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional = None, b_hh: Optional = None
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_cell_arguments(OPERATOR, input, old_h, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    of_input, of_state = (None if bias is None else bias.double() for bias in (b_ih, b_hh))
    a = F.linear(input.double(), w_ih.double(), of_input).chunk(3, 1)
    s = F.linear(old_h.double(), w_hh.double(), of_state).chunk(3, 1)
    z, n = torch.sigmoid(a[1] + s[1]), torch.tanh(a[2] + torch.sigmoid(a[0] + s[0]) * s[2])
    return torch.lerp(n, old_h.double(), z).to(input.dtype)


@control
def gates_in_one_product(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional = None, b_hh: Optional = None
) -> Tensor:
    """Both gates in one product of input and state side by side; the parts of the candidate by themselves."""
    check_cell_arguments(OPERATOR, input, old_h, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    two = w_ih.shape[0] // 3 * 2
    bias = None if b_ih is None or b_hh is None else (b_ih + b_hh)[:two]
    gates = F.linear(torch.cat([input, old_h], 1), torch.cat([w_ih[:two], w_hh[:two]], 1), bias)
    r, z = torch.sigmoid(gates).chunk(2, 1)
    input, old_h = input.contiguous(), old_h.contiguous()
    a_n = F.linear(input, w_ih[two:], None if b_ih is None else b_ih[two:])
    n = torch.tanh(a_n + r * F.linear(old_h, w_hh[two:], None if b_hh is None else b_hh[two:]))
    return n + z * (old_h - n)


@control(gives_up=OLD_STYLE)
class TwoProductsOfGates(Unit):
    """new_h is (1 - z) n + z old_h, as the paper writes it."""

    def new_h(self, n: Tensor, z: Tensor, h: Tensor) -> Tensor:
        return (1 - z) * n + z * h
