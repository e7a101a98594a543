"""The LSTM cell written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from spec.lstm_cell import OPERATOR

Optional = Tensor | None
Outputs = tuple[Tensor, Tensor]


class Cell:
    """The honest cell: every step as `spec/lstm_cell.py` states it, with the gates of half types in float32."""

    def __call__(
        self,
        input: Tensor,
        old_h: Tensor,
        old_cell: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Optional = None,
        b_hh: Optional = None,
    ) -> Outputs:
        self.check(input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh)
        new_h, new_cell = _Function.apply(self, input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh)
        return new_h, new_cell

    def check(self, *tensors: Optional) -> None:
        *before, b_ih, b_hh = tensors
        check_cell_arguments(OPERATOR, *before, b_ih=b_ih, b_hh=b_hh)

    # forward

    def gates(self, input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional, b_hh: Optional) -> Tensor:
        return self.product(input, w_ih, b_ih) + self.product(old_h, w_hh, b_hh)

    def product(self, x: Tensor, weight: Tensor, bias: Optional) -> Tensor:
        return F.linear(x.contiguous(), weight, bias)

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        """The pre-activations of input gate, forget gate, candidate and output gate."""
        return gates.to(torch.promote_types(gates.dtype, torch.float32)).chunk(4, 1)

    def sigmoid(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)

    def candidate(self, z: Tensor) -> Tensor:
        return torch.tanh(z)

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        return f * old_cell + i * k

    def new_h(self, new_cell: Tensor, o: Tensor) -> Tensor:
        return o * torch.tanh(new_cell)

    # backward

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return g_h, g_c

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, t: Tensor, o: Tensor) -> Tensor:
        return g_h * o * (1 - t * t) + g_c

    def d_input_gate(self, d_new_cell: Tensor, k: Tensor, i: Tensor) -> Tensor:
        return d_new_cell * k * i * (1 - i)

    def d_forget_gate(self, d_new_cell: Tensor, old_cell: Tensor, f: Tensor) -> Tensor:
        return d_new_cell * old_cell * f * (1 - f)

    def d_candidate(self, d_new_cell: Tensor, i: Tensor, k: Tensor) -> Tensor:
        return d_new_cell * i * (1 - k * k)

    def d_output_gate(self, g_h: Tensor, t: Tensor, o: Tensor) -> Tensor:
        return g_h * t * o * (1 - o)

    def d_old_cell(self, d_new_cell: Tensor, f: Tensor) -> Tensor:
        return d_new_cell * f

    def d_weight(self, d_gates: Tensor, x: Tensor) -> Tensor:
        return d_gates.t() @ x

    def d_biases(self, d_gates: Tensor) -> Outputs:
        return d_gates.sum(0), d_gates.sum(0)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a cell. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, cell: Cell, *tensors: Tensor) -> Outputs:
        input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh = tensors
        ctx.cell = cell
        ctx.save_for_backward(*tensors)
        z_i, z_f, z_k, z_o = cell.split(cell.gates(input, old_h, w_ih, w_hh, b_ih, b_hh))
        c = old_cell.to(z_i.dtype)
        new_cell = cell.new_cell(c, cell.sigmoid(z_i), cell.sigmoid(z_f), cell.candidate(z_k))
        return cell.new_h(new_cell, cell.sigmoid(z_o)).to(input.dtype), new_cell.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Optional, ...]:
        cell: Cell = ctx.cell
        input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh = ctx.saved_tensors
        z_i, z_f, z_k, z_o = cell.split(cell.gates(input, old_h, w_ih, w_hh, b_ih, b_hh))
        i, f, k, o = torch.sigmoid(z_i), torch.sigmoid(z_f), torch.tanh(z_k), torch.sigmoid(z_o)
        c = old_cell.to(i.dtype)
        g_h, g_c = (g.to(i.dtype) for g in cell.cotangents(*cotangents))
        t = torch.tanh(f * c + i * k)
        d_new_cell = cell.d_new_cell(g_h, g_c, t, o)
        parts = (
            cell.d_input_gate(d_new_cell, k, i),
            cell.d_forget_gate(d_new_cell, c, f),
            cell.d_candidate(d_new_cell, i, k),
            cell.d_output_gate(g_h, t, o),
        )
        d_gates = torch.cat(parts, 1).to(input.dtype)
        of_biases = cell.d_biases(d_gates) if b_ih is not None else (None, None)
        d_old_cell = cell.d_old_cell(d_new_cell, f).to(input.dtype)
        of_weights = cell.d_weight(d_gates, input), cell.d_weight(d_gates, old_h)
        return None, d_gates @ w_ih, d_gates @ w_hh, d_old_cell, *of_weights, *of_biases
