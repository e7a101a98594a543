"""The LSTM cell, wrong outputs: gates in another order, biases and states that are left out."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.lstm_cell import Cell, Optional
from tests.zoo.registry import fault

WRONG = r"new_(h|cell) was .* but should be"


@fault("forward-parity", WRONG)
class GatesInAnotherOrder(Cell):
    """The columns are taken as input, candidate, forget and output, as in TensorFlow."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        z_i, z_k, z_f, z_o = super().split(gates)
        return z_i, z_f, z_k, z_o


@fault("forward-parity", WRONG)
class ForgetBias(Cell):
    """1 is added to the forget gate's pre-activation, the forget_bias of TensorFlow."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        z_i, z_f, z_k, z_o = super().split(gates)
        return z_i, z_f + 1, z_k, z_o


@fault("forward-parity", WRONG)
class CoupledGates(Cell):
    """The input gate is 1 - forget gate."""

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        return f * old_cell + (1 - f) * k


@fault("forward-parity", r"lstm_cell\[biases\]")
class OneBias(Cell):
    """Only the bias of the input is added."""

    def gates(self, input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional, b_hh: Optional) -> Tensor:
        return super().gates(input, old_h, w_ih, w_hh, b_ih, None)


@fault("forward-parity", r"new_h was .* but should be")
class StateWithoutTanh(Cell):
    """new_h is o new_cell, without tanh."""

    def new_h(self, new_cell: Tensor, o: Tensor) -> Tensor:
        return o * new_cell


@fault("forward-parity", WRONG)
class SigmoidCandidate(Cell):
    """The candidate's activation is a sigmoid, as all columns go through one."""

    def candidate(self, z: Tensor) -> Tensor:
        return torch.sigmoid(z)


@fault("forward-parity", r"values (overflowing-exp|non-finite)")
class TanhByExponentials(Cell):
    """tanh(z) is (exp(z) - exp(-z)) / (exp(z) + exp(-z)), which is NaN where exp overflows."""

    def candidate(self, z: Tensor) -> Tensor:
        return (torch.exp(z) - torch.exp(-z)) / (torch.exp(z) + torch.exp(-z))


@fault("forward-parity", WRONG)
class HardSigmoid(Cell):
    """The gates are clamped lines, as on devices without an exponential."""

    def sigmoid(self, z: Tensor) -> Tensor:
        return (z / 6 + 0.5).clamp(0, 1)


@fault("forward-parity", r"values non-finite")
class ClampedCell(Cell):
    """The new cell is clamped to +-1e6 and NaN becomes 0, against divergence."""

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        return torch.nan_to_num(super().new_cell(old_cell, i, f, k)).clamp(-1e6, 1e6)


@fault("forward-parity", WRONG, dtype=torch.float64)
class SingleInside(Cell):
    """The gates of float64 go through float32."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        return tuple(z.to(gates.dtype) for z in super().split(gates.to(torch.float32)))


@fault("sizes", r"state-\d+|usual|tails")
class ForgetsTheTail(Cell):
    """Of a state wider than 16, columns behind the last full vector of 16 keep their old cell."""

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        size = old_cell.shape[1]
        seen = torch.arange(size, device=old_cell.device) < (size // 16 * 16 if size > 16 else size)
        return torch.where(seen, super().new_cell(old_cell, i, f, k), old_cell)


@fault("invariants", r"forget gate of 1|zero weights and biases|a batch is the sum of its rows|permuting")
class CellOfTheFirstRow(Cell):
    """Every row's forget gate meets the cell of the first row."""

    def new_cell(self, old_cell: Tensor, i: Tensor, f: Tensor, k: Tensor) -> Tensor:
        return super().new_cell(old_cell[:1].expand_as(old_cell), i, f, k)


@fault("rejects-wrong-calls", r"b_hh without b_ih .*silently accepted")
class AcceptsOneBias(Cell):
    """A single bias is accepted, and left out."""

    def __call__(self, *tensors: Optional) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        given = [*tensors, None, None][:7]
        return super().__call__(*given[:5], *(given[5:] if None not in given[5:] else (None, None)))  # type: ignore[arg-type]
