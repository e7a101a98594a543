"""The LSTM cell, right outputs with wrong gradients."""

from __future__ import annotations

from torch import Tensor

from tests.zoo.honest.lstm_cell import Cell, Outputs
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of \w+ was")
class ForgetsTheCotangentOfTheCell(Cell):
    """The cotangent of new_cell is left out, as where only new_h is used."""

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, t: Tensor, o: Tensor) -> Tensor:
        return super().d_new_cell(g_h, g_c * 0, t, o)


@fault("vjp-parity", r"gradient of \w+ was")
class TanhHasSlopeOne(Cell):
    """The slope of tanh at the new cell is taken to be 1."""

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, t: Tensor, o: Tensor) -> Tensor:
        return super().d_new_cell(g_h, g_c, t * 0, o)


@fault("vjp-parity", r"gradient of \w+ was")
class ForgetGateReadsTheNewCell(Cell):
    """The forget gate's gradient has the new cell in place of the old one, as if it were written in place."""

    def d_forget_gate(self, d_new_cell: Tensor, old_cell: Tensor, f: Tensor) -> Tensor:
        return super().d_forget_gate(d_new_cell, f * old_cell, f)


@fault("vjp-parity", r"gradient of \w+ was")
class SigmoidSlopeOfTheCandidate(Cell):
    """The candidate's slope is that of a sigmoid, k (1 - k)."""

    def d_candidate(self, d_new_cell: Tensor, i: Tensor, k: Tensor) -> Tensor:
        return d_new_cell * i * k * (1 - k)


@fault("vjp-parity", r"gradient of old_cell was")
class CellGradientPassedOn(Cell):
    """The gradient of old_cell is that of new_cell, without the forget gate, as in LLTM."""

    def d_old_cell(self, d_new_cell: Tensor, f: Tensor) -> Tensor:
        return d_new_cell


@fault("vjp-parity", r"gradient of b_(ih|hh) was")
class BiasesShareTheGradient(Cell):
    """Each bias gets half of the gradient, as if there were one."""

    def d_biases(self, d_gates: Tensor) -> Outputs:
        return d_gates.sum(0) / 2, d_gates.sum(0) / 2


@fault("vjp-parity", r"gradient of w_(ih|hh) was")
class MeanOverTheBatch(Cell):
    """The gradients of the weights are means over the batch, not sums."""

    def d_weight(self, d_gates: Tensor, x: Tensor) -> Tensor:
        return super().d_weight(d_gates, x) / max(len(x), 1)


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Cell):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return _in_memory(g_h), _in_memory(g_c)


def _in_memory(g: Tensor) -> Tensor:
    if g.is_contiguous():
        return g
    storage = g.as_strided((g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
    return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)
