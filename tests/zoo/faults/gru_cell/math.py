"""The GRU cell, wrong outputs: gates in another order or another place, biases that are left out."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.gru_cell import Columns, Optional, Unit
from tests.zoo.registry import fault

WRONG = r"new_h was .* but should be"


@fault("forward-parity", WRONG)
class UpdateGateFirst(Unit):
    """The columns are taken as update, reset and candidate, as in Keras."""

    def split(self, columns: Tensor) -> Columns:
        z, r, n = super().split(columns)
        return r, z, n


@fault("forward-parity", WRONG)
class UpdateGateTurned(Unit):
    """new_h is z n + (1 - z) old_h, as other papers write it."""

    def new_h(self, n: Tensor, z: Tensor, h: Tensor) -> Tensor:
        return h + z * (n - h)


@fault("forward-parity", r"gru_cell\[biases\]")
class ResetBeforeTheBias(Unit):
    """The reset gate multiplies the product of the state alone; the bias is added after it."""

    def of_state(self, old_h: Tensor, w_hh: Tensor, b_hh: Optional) -> Columns:
        self._bias = 0.0 if b_hh is None else self.split(b_hh.unsqueeze(0))[2]
        return super().of_state(old_h, w_hh, b_hh)

    def candidate(self, a: Columns, s: Columns, r: Tensor) -> Tensor:
        return torch.tanh(a[2] + r * (s[2] - self._bias) + self._bias)


@fault("forward-parity", WRONG)
class NoResetGate(Unit):
    """The reset gate is left out."""

    def candidate(self, a: Columns, s: Columns, r: Tensor) -> Tensor:
        return torch.tanh(a[2] + s[2])


@fault("forward-parity", WRONG)
class ResetsTheInput(Unit):
    """The reset gate multiplies the part of the input too."""

    def candidate(self, a: Columns, s: Columns, r: Tensor) -> Tensor:
        return torch.tanh(r * (a[2] + s[2]))


@fault("forward-parity", r"gru_cell\[biases\]")
class OneBias(Unit):
    """Only the bias of the input is added."""

    def of_state(self, old_h: Tensor, w_hh: Tensor, b_hh: Optional) -> Columns:
        return super().of_state(old_h, w_hh, None)


@fault("forward-parity", r"values (overflowing-exp|non-finite)")
class TanhByExponentials(Unit):
    """tanh(x) is (exp(x) - exp(-x)) / (exp(x) + exp(-x)), which is NaN where exp overflows."""

    def candidate(self, a: Columns, s: Columns, r: Tensor) -> Tensor:
        x = a[2] + r * s[2]
        return (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x))


@fault("forward-parity", WRONG)
class GatesInBfloat16(Unit):
    """The reset gate is rounded to bfloat16, in float32 too."""

    def reset_gate(self, a: Columns, s: Columns) -> Tensor:
        r = super().reset_gate(a, s)
        return r.to(torch.bfloat16).to(r.dtype)


@fault("forward-parity", WRONG, dtype=torch.float64)
class SingleInside(Unit):
    """The gates of float64 go through float32."""

    def split(self, columns: Tensor) -> Columns:
        return tuple(x.to(columns.dtype) for x in super().split(columns.to(torch.float32)))


@fault("sizes", r"state-\d+|usual|tails")
class ForgetsTheTail(Unit):
    """Of a state wider than 16, columns behind the last full vector of 16 keep their old state."""

    def new_h(self, n: Tensor, z: Tensor, h: Tensor) -> Tensor:
        size = h.shape[1]
        seen = torch.arange(size, device=h.device) < (size // 16 * 16 if size > 16 else size)
        return torch.where(seen, super().new_h(n, z, h), h)


@fault("invariants", r"an update gate|zero weights and biases|a batch is the sum of its rows|permuting")
class StateOfTheFirstRow(Unit):
    """Every row keeps the state of the first row."""

    def new_h(self, n: Tensor, z: Tensor, h: Tensor) -> Tensor:
        return super().new_h(n, z, h[:1].expand_as(h))


@fault("rejects-wrong-calls", r"silently accepted")
class BroadcastsTheBias(Unit):
    """A bias of one element is used for all gates."""

    def check(self, *tensors: Optional) -> None:
        *before, b_ih, b_hh = tensors
        wide = None if b_ih is None or b_hh is None else before[2].new_zeros(before[2].shape[0])
        super().check(*before, wide, wide)

    def of_input(self, input: Tensor, w_ih: Tensor, b_ih: Optional) -> Columns:
        product = F.linear(input.contiguous(), w_ih)
        return self.split(product if b_ih is None else product + b_ih)
