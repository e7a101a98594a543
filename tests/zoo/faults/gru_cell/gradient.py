"""The GRU cell, right outputs with wrong gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.gru_cell import Unit
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of old_h was")
class ForgetsTheKeptState(Unit):
    """The gradient of old_h is that of the product alone, without what the update gate keeps."""

    def d_old_h(self, product: Tensor, g: Tensor, z: Tensor) -> Tensor:
        return product


@fault("vjp-parity", r"gradient of (old_h|w_hh|b_hh) was")
class StateGradientWithoutReset(Unit):
    """The candidate's gradient reaches the state's part without the reset gate."""

    def d_of_state(self, d_r: Tensor, d_z: Tensor, d_n: Tensor, r: Tensor) -> Tensor:
        return torch.cat([d_r, d_z, d_n], 1)


@fault("vjp-parity", r"gradient of \w+ was")
class ResetGateIsAConstant(Unit):
    """No gradient goes through the reset gate."""

    def d_reset_gate(self, d_n: Tensor, s_n: Tensor, r: Tensor) -> Tensor:
        return d_n * 0


@fault("vjp-parity", r"gradient of \w+ was")
class UpdateGateForgetsTheCandidate(Unit):
    """The update gate's gradient is g old_h, without the candidate that it replaces."""

    def d_update_gate(self, g: Tensor, h: Tensor, n: Tensor, z: Tensor) -> Tensor:
        return super().d_update_gate(g, h, n * 0, z)


@fault("vjp-parity", r"gradient of \w+ was")
class TanhHasSlopeOne(Unit):
    """The slope of tanh is taken to be 1."""

    def d_candidate(self, g: Tensor, z: Tensor, n: Tensor) -> Tensor:
        return super().d_candidate(g, z, n * 0)


@fault("vjp-parity", r"gradient of b_(ih|hh) was")
class BiasOfTheFirstRow(Unit):
    """The gradients of the biases are those of the first row."""

    def d_bias(self, d_columns: Tensor) -> Tensor:
        return super().d_bias(d_columns[:1])


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Unit):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = g.as_strided((g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)
