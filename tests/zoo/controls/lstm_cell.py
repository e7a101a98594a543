"""The LSTM cell, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from spec.lstm_cell import OPERATOR
from tests.zoo.honest.lstm_cell import Cell, Optional, Outputs
from tests.zoo.registry import OLD_STYLE, control


def _pointwise(gates: Tensor, old_cell: Tensor) -> Outputs:
    z_i, z_f, z_k, z_o = gates.chunk(4, 1)
    new_cell = torch.sigmoid(z_f) * old_cell + torch.sigmoid(z_i) * torch.tanh(z_k)
    return torch.sigmoid(z_o) * torch.tanh(new_cell), new_cell


@control(gives_up=OLD_STYLE)
class Honest(Cell):
    """The honest cell, the base of every fault."""


@control
def one_product(
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional = None,
    b_hh: Optional = None,
) -> Outputs:
    """Input and state side by side, in one product, with the sum of both biases."""
    check_cell_arguments(OPERATOR, input, old_h, old_cell, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    bias = None if b_ih is None or b_hh is None else b_ih + b_hh
    gates = F.linear(torch.cat([input, old_h], 1), torch.cat([w_ih, w_hh], 1), bias)
    return _pointwise(gates, old_cell)


@control
def everything_in_float64(
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional = None,
    b_hh: Optional = None,
) -> Outputs:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_cell_arguments(OPERATOR, input, old_h, old_cell, w_ih, w_hh, b_ih=b_ih, b_hh=b_hh)
    of_biases = [None if bias is None else bias.double() for bias in (b_ih, b_hh)]
    gates = F.linear(input.double(), w_ih.double(), of_biases[0]) + F.linear(
        old_h.double(), w_hh.double(), of_biases[1]
    )
    new_h, new_cell = _pointwise(gates, old_cell.double())
    return new_h.to(input.dtype), new_cell.to(input.dtype)


@control(gives_up=OLD_STYLE)
class FourProducts(Cell):
    """A product for each gate, as in cells that keep their weights apart."""

    def product(self, x: Tensor, weight: Tensor, bias: Optional) -> Tensor:
        rows = weight.chunk(4) if weight.shape[0] else (weight,)
        biases = (None,) * 4 if bias is None else bias.chunk(4)
        return torch.cat([F.linear(x.contiguous(), w, b) for w, b in zip(rows, biases, strict=False)], 1)


@control(gives_up=OLD_STYLE)
class MultipliedAndAddedAtOnce(Cell):
    """The new cell is one addcmul, which may round once."""

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        return torch.addcmul(f * old_cell, i, k)
