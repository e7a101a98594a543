"""Right for usual batches and cotangents, but an invariant of the operator does not hold."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("invariants", "gradient of .* of the cotangents 4.g1 -2.g2 .* the VJP is linear in the cotangents")
class CotangentsClipped(Cell):
    """Cotangents are clipped to [-4, 4], against exploding gradients: normal ones are seldom larger."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return g_h.clamp(-4, 4), g_c.clamp(-4, 4)


@fault("invariants", "new_h of the batch row by row .* that of the whole batch: a batch is the sum of its rows")
class RowsMixed(Cell):
    """The pre-activations are centred over the batch, as in a batch normalisation."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = super().gates(input, weights, bias, old_h)
        return z - z.mean(0, keepdim=True) if len(z) == 1 else z


@fault("invariants", "new_(h|cell) of the batch permuted .* permuting the batch permutes outputs")
class LastRowFromNeighbour(Cell):
    """If the batch is odd, its last row reads the cell of the previous row."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        rows = list(range(len(old_cell)))
        if len(rows) % 2 and len(rows) > 1:
            rows[-1] -= 1
        return super().new_cell(old_cell[rows], candidate, input_gate)


@fault("invariants", "gradient of (weights|bias) of the batch in two parts")
class GradientsAveraged(Cell):
    """The gradients of weights and bias are means over the batch instead of sums."""

    def d_weights(self, d_gates: Tensor, X: Tensor) -> Tensor:
        return super().d_weights(d_gates, X) / len(X)

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return super().d_bias(d_gates) / len(d_gates)


@fault("invariants", "new_cell was .* because an input gate of 0 leaves the cell as it was, bit for bit.*closed-input")
class GateNeverCloses(Cell):
    """The input gate is kept above 1e-6, so that gradients flow."""

    def sigmoid(self, z: Tensor) -> Tensor:
        return super().sigmoid(z).clamp(min=1e-6)


@fault("invariants", r"new_h was .* zero weights and bias give new_cell = old_cell and new_h = tanh\(old_cell\)/2")
class OutputGateSharpened(Cell):
    """The output gate is 1 for a pre-activation of exactly 0."""

    def new_h(self, new_cell: Tensor, output_gate: Tensor) -> Tensor:
        return super().new_h(new_cell, torch.where(output_gate == 0.5, torch.ones_like(output_gate), output_gate))
