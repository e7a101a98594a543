"""LayerNorm, right outputs with wrong gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of input was")
class MeanIsAConstant(Norm):
    """d_input without the term that comes from the mean."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor, dims: Dims) -> Tensor:
        return rstd * (h - xhat * (h * xhat).mean(dims, keepdim=True))


@fault("vjp-parity", r"gradient of input was")
class VarianceIsAConstant(Norm):
    """d_input without the term that comes from the variance."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor, dims: Dims) -> Tensor:
        return rstd * (h - h.mean(dims, keepdim=True))


@fault("vjp-parity", r"gradient of input was")
class ForgetsTheWeight(Norm):
    """d_input uses the cotangent of the output as that of xhat."""

    def scaled_cotangent(self, g: Tensor, weight: Tensor | None) -> Tensor:
        return g


@fault("vjp-parity", r"gradient of weight was")
class WeightGradientOfTheBias(Norm):
    """d_weight is the sum of the cotangents, without xhat."""

    def d_weight(self, g: Tensor, xhat: Tensor, rows: Dims) -> Tensor:
        return self.summed(g, rows)


@fault("vjp-parity", r"gradient of (weight|bias) was")
class MeanOverRows(Norm):
    """The gradients of weight and bias are means over the rows, not sums."""

    def summed(self, tensor: Tensor, rows: Dims) -> Tensor:
        return tensor.mean(rows) if rows else tensor


@fault("vjp-parity", r"layer_norm\[images\]")
class SumsTheFirstDimensionAlone(Norm):
    """With several dimensions of rows, only the first is summed; the others contribute their first row."""

    def summed(self, tensor: Tensor, rows: Dims) -> Tensor:
        total = tensor.sum(0) if rows else tensor
        for _ in rows[1:]:
            total = total[0]
        return total


@fault("gradient-subsets", r"gradient of bias is missing", defects=(28,))
class NoBackwardForTheBias(Norm):
    """The gradient of the bias is returned only together with that of the weight."""

    def wanted(self, gradients: Sequence[Tensor | None], needs: Sequence[bool]) -> list[Tensor | None]:
        d_input, d_weight, d_bias = super().wanted(gradients, needs)
        return [d_input, d_weight, d_bias if needs[1] else None]


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Norm):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = torch.as_strided(g, (g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(Norm):
    """A second differentiation treats xhat as a constant."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor, dims: Dims) -> Tensor:
        return super().d_input(h, xhat.detach(), rstd.detach(), dims)
