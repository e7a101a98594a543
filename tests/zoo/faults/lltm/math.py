"""Forward computes another function."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("forward-parity", "with input_gate and output_gate exchanged")
class SwappedGates(Cell):
    """Input gate and output gate are read from each other's columns."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        i, o, k = super().split(gates)
        return o, i, k


@fault("forward-parity", "with input_gate and candidate exchanged")
class CandidateFirst(Cell):
    """The candidate is read from the first block of columns."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        i, o, k = super().split(gates)
        return k, o, i


@fault("forward-parity", "new_h was")
class SwappedConcatenation(Cell):
    """[input, old_h] instead of [old_h, input]."""

    def concatenated(self, input: Tensor, old_h: Tensor) -> Tensor:
        return torch.cat([input, old_h], dim=1)


@fault("forward-parity", "new_(h|cell) was")
class NoOldCell(Cell):
    """The old cell is not added."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return candidate * input_gate


@fault("forward-parity", "new_(h|cell) was")
class MinusCandidate(Cell):
    """The candidate is subtracted."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return old_cell - candidate * input_gate


@fault("forward-parity", "new_(h|cell) was", defects=(29,))
class PlusForTimes(Cell):
    """candidate + input_gate instead of candidate * input_gate."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return old_cell + candidate + input_gate


@fault("forward-parity", "new_h was")
class NoTanh(Cell):
    """new_h lacks the tanh."""

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return new_cell * output_gate


@fault("forward-parity", "new_h was")
class SigmoidForTanh(Cell):
    """sigmoid instead of tanh at the output."""

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return torch.sigmoid(new_cell) * output_gate


@fault("forward-parity", "new_h was")
class TanhOfOldCell(Cell):
    """new_h is computed from the candidate alone, before the old cell is added."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        self._old_cell = old_cell
        return super().new_cell(old_cell, candidate, input_gate)

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return torch.tanh(new_cell - self._old_cell) * output_gate


@fault("forward-parity", "new_(h|cell) was")
class ReluCandidate(Cell):
    """relu instead of elu."""

    def candidate(self, z: Tensor) -> Tensor:
        return F.relu(z)


@fault("forward-parity", "new_(h|cell) was")
class EluHalfAlpha(Cell):
    """elu with alpha = 0.5."""

    def candidate(self, z: Tensor) -> Tensor:
        return F.elu(z, alpha=0.5)


@fault("forward-parity", "new_(h|cell) was")
class SeluCandidate(Cell):
    """selu instead of elu."""

    def candidate(self, z: Tensor) -> Tensor:
        return F.selu(z)


@fault("forward-parity", "new_(h|cell) was")
class HardSigmoid(Cell):
    """A piecewise linear sigmoid."""

    def sigmoid(self, z: Tensor) -> Tensor:
        return F.hardsigmoid(z)


@fault("forward-parity", "new_h was")
class BiasForgotten(Cell):
    """The bias is not added."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return F.linear(self.concatenated(input, old_h), weights)


@fault("forward-parity", "new_h was")
class BiasOnFirstRowOnly(Cell):
    """The bias is added to the first row of the batch only."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = F.linear(self.concatenated(input, old_h), weights)
        return torch.cat([z[:1] + bias, z[1:]])


@fault("forward-parity", "new_h was")
class ResetGateScale(Cell):
    """The pre-activations are one percent too large."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        return tuple(z * 1.01 for z in super().split(gates))


@fault("forward-parity", "it is 1.01 times")
class OnePercentOutput(Cell):
    """new_h is one percent too large."""

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return 1.01 * super().new_h(new_cell, output_gate)


@fault("forward-parity", "zero everywhere", defects=(31,))
class Zeros(Cell):
    """All outputs are zero."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return torch.zeros_like(new_h), torch.zeros_like(new_cell)


@fault("forward-parity", "every row equals what row 0 should be", defects=(6,))
class RowStrideForgotten(Cell):
    """Every row of the batch reads the gates and the cell of row 0."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h[:1].repeat(len(new_h), 1), new_cell[:1].repeat(len(new_h), 1)


@fault("forward-parity", "new_h was", defects=(6,))
class GateRowStride(Cell):
    """The gates of row r are read at r*state_size and not at r*3*state_size."""

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        batch, width = gates.shape
        H = width // 3
        flat = super().split(gates)[0].new_tensor(gates.detach().flatten().tolist())
        index = torch.arange(batch)[:, None] * H + torch.arange(width)[None, :]
        return flat[index].chunk(3, dim=1)


@fault("forward-parity", "columns .* of 5", dtype=torch.float32)
class VectorTailForgotten(Cell):
    """The columns behind the last full vector of four keep their old values: here, zero."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        tail = new_h.shape[1] // 4 * 4
        new_h, new_cell = new_h.clone(), new_cell.clone()
        new_h[:, tail:] = 0
        new_cell[:, tail:] = 0
        return new_h, new_cell


@fault("sizes", "columns 256 of 257|columns 1024 of 1025", dtype=torch.float32)
class OneBlockOfColumns(Cell):
    """With 256 columns or more, those behind the last full block of 256 are not computed."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        edge = new_h.shape[1] // 256 * 256
        if edge:
            new_h, new_cell = new_h.clone(), new_cell.clone()
            new_h[:, edge:], new_cell[:, edge:] = 0, 0
        return new_h, new_cell
