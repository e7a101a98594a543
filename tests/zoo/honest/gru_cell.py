"""The GRU cell written out in steps, each a method: right as it stands, and wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.recurrent import check_cell_arguments
from spec.gru_cell import OPERATOR

Optional = Tensor | None
#: Pre-activations of the reset gate, the update gate and the candidate.
Columns = tuple[Tensor, ...]


class Unit:
    """The honest cell: every step as `spec/gru_cell.py` states it, with the gates of half types in float32."""

    def __call__(
        self,
        input: Tensor,
        old_h: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Optional = None,
        b_hh: Optional = None,
    ) -> Tensor:
        self.check(input, old_h, w_ih, w_hh, b_ih, b_hh)
        return _Function.apply(self, input, old_h, w_ih, w_hh, b_ih, b_hh)

    def check(self, *tensors: Optional) -> None:
        *before, b_ih, b_hh = tensors
        check_cell_arguments(OPERATOR, *before, b_ih=b_ih, b_hh=b_hh)

    # forward

    def of_input(self, input: Tensor, w_ih: Tensor, b_ih: Optional) -> Columns:
        return self.split(F.linear(input.contiguous(), w_ih, b_ih))

    def of_state(self, old_h: Tensor, w_hh: Tensor, b_hh: Optional) -> Columns:
        return self.split(F.linear(old_h.contiguous(), w_hh, b_hh))

    def split(self, columns: Tensor) -> Columns:
        return columns.to(torch.promote_types(columns.dtype, torch.float32)).chunk(3, 1)

    def reset_gate(self, a: Columns, s: Columns) -> Tensor:
        return torch.sigmoid(a[0] + s[0])

    def update_gate(self, a: Columns, s: Columns) -> Tensor:
        return torch.sigmoid(a[1] + s[1])

    def candidate(self, a: Columns, s: Columns, r: Tensor) -> Tensor:
        return torch.tanh(a[2] + r * s[2])

    def new_h(self, n: Tensor, z: Tensor, h: Tensor) -> Tensor:
        return n + z * (h - n)

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def d_candidate(self, g: Tensor, z: Tensor, n: Tensor) -> Tensor:
        return g * (1 - z) * (1 - n * n)

    def d_reset_gate(self, d_n: Tensor, s_n: Tensor, r: Tensor) -> Tensor:
        return d_n * s_n * r * (1 - r)

    def d_update_gate(self, g: Tensor, h: Tensor, n: Tensor, z: Tensor) -> Tensor:
        return g * (h - n) * z * (1 - z)

    def d_of_state(self, d_r: Tensor, d_z: Tensor, d_n: Tensor, r: Tensor) -> Tensor:
        return torch.cat([d_r, d_z, d_n * r], 1)

    def d_old_h(self, product: Tensor, g: Tensor, z: Tensor) -> Tensor:
        return product + g * z

    def d_bias(self, d_columns: Tensor) -> Tensor:
        return d_columns.sum(0)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a cell. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, cell: Unit, *tensors: Tensor) -> Tensor:
        input, old_h, w_ih, w_hh, b_ih, b_hh = tensors
        ctx.cell = cell
        ctx.save_for_backward(*tensors)
        a, s = cell.of_input(input, w_ih, b_ih), cell.of_state(old_h, w_hh, b_hh)
        n = cell.candidate(a, s, cell.reset_gate(a, s))
        return cell.new_h(n, cell.update_gate(a, s), old_h.to(n.dtype)).to(input.dtype)

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Optional, ...]:
        cell: Unit = ctx.cell
        input, old_h, w_ih, w_hh, b_ih, b_hh = ctx.saved_tensors
        a, s = cell.of_input(input, w_ih, b_ih), cell.of_state(old_h, w_hh, b_hh)
        r, z = cell.reset_gate(a, s), cell.update_gate(a, s)
        n = cell.candidate(a, s, r)
        g, h = cell.cotangent(cotangent).to(n.dtype), old_h.to(n.dtype)
        d_n = cell.d_candidate(g, z, n)
        d_r, d_z = cell.d_reset_gate(d_n, s[2], r), cell.d_update_gate(g, h, n, z)
        d_a = torch.cat([d_r, d_z, d_n], 1).to(input.dtype)
        d_s = cell.d_of_state(d_r, d_z, d_n, r).to(input.dtype)
        of_biases = (None, None) if b_ih is None else (cell.d_bias(d_a), cell.d_bias(d_s))
        d_old_h = cell.d_old_h((d_s @ w_hh).to(n.dtype), g, z).to(input.dtype)
        return None, d_a @ w_ih, d_old_h, d_a.t() @ input, d_s.t() @ old_h, *of_biases
