"""Causal convolution, right outputs with wrong gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.causal_conv1d import Filter
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of input was")
class LooksBackInBackwardToo(Filter):
    """The gradient of the input is the same convolution of the cotangent, not its transpose."""

    def d_input(self, d_z: Tensor, w: Tensor) -> Tensor:
        return self.z(d_z, w, None)


@fault("vjp-parity", r"gradient of weight was")
class WeightsGradientOfTheFirstRow(Filter):
    """The gradient of the weight is that of the first row of the batch: no addition over the rows."""

    def d_weight(self, d_z: Tensor, x: Tensor, width: int) -> Tensor:
        return super().d_weight(d_z[:1], x[:1], width)


@fault("vjp-parity", r"gradient of weight was")
class WeightsGradientTurnedRound(Filter):
    """The taps of the weight's gradient are in the other order."""

    def d_weight(self, d_z: Tensor, x: Tensor, width: int) -> Tensor:
        return super().d_weight(d_z, x, width).flip(-1)


@fault("vjp-parity", r"gradient of bias was")
class MeanOfTheBias(Filter):
    """The gradient of the bias is a mean over the steps."""

    def d_bias(self, d_z: Tensor) -> Tensor:
        return d_z.mean(-1).sum(0)


@fault("vjp-parity", r"causal_conv1d\[silu\]")
class SlopeOfTheSigmoid(Filter):
    """The slope of silu is s (1 - s), that of the sigmoid."""

    def slope(self, z: Tensor) -> Tensor:
        s = torch.sigmoid(z)
        return s * (1 - s)


@fault("sizes", r"gradient of bias was .*many-rows", dtype=torch.bfloat16)
class BiasAddedUpInHalf(Filter):
    """The gradient of the bias is added up in bfloat16, row by row: the sum stops growing."""

    def d_bias(self, d_z: Tensor) -> Tensor:
        rows = d_z.sum(-1).bfloat16()
        index = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
        return rows.new_zeros((1, rows.shape[1])).index_put((index,), rows, accumulate=True)[0].to(d_z.dtype)


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(Filter):
    """A second differentiation treats the slope as a constant."""

    def slope(self, z: Tensor) -> Tensor:
        return super().slope(z).detach()
