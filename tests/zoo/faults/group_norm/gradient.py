"""GroupNorm, right outputs with wrong gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.group_norm import Groups, Optional
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of input was")
class MeanIsAConstant(Groups):
    """d_input without the term that comes from the mean."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return rstd * (h - xhat * (h * xhat).mean(-1, keepdim=True))


@fault("vjp-parity", r"gradient of input was")
class VarianceIsAConstant(Groups):
    """d_input without the term that comes from the variance."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return rstd * (h - h.mean(-1, keepdim=True))


@fault("vjp-parity", r"gradient of input was")
class ForgetsTheWeight(Groups):
    """d_input uses the cotangent of the output as that of xhat."""

    def scaled_cotangent(self, g: Tensor, weight: Optional) -> Tensor:
        return g


@fault("vjp-parity", r"gradient of weight was")
class WeightGradientOfTheBias(Groups):
    """d_weight is the sum of the cotangents, without xhat."""

    def d_weight(self, g: Tensor, xhat: Tensor) -> Tensor:
        return self.over_channels(g)


@fault("vjp-parity", r"gradient of (weight|bias) was")
class SumsTheFirstSample(Groups):
    """The gradients of weight and bias are those of the first sample."""

    def over_channels(self, tensor: Tensor) -> Tensor:
        return super().over_channels(tensor[:1])


@fault("vjp-parity", r"gradient of bias was", dtype=torch.bfloat16)
class BiasGradientInHalf(Groups):
    """The gradient of the bias is added up element by element in bfloat16."""

    def d_bias(self, g: Tensor) -> Tensor:
        terms = g.to(torch.bfloat16).movedim(1, -1).flatten(0, -2)
        total = g.new_zeros(g.shape[1], dtype=torch.bfloat16)
        for term in terms:
            total = total + term
        return total


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Groups):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = torch.as_strided(g, (g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(Groups):
    """A second differentiation treats xhat as a constant."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return super().d_input(h, xhat.detach(), rstd.detach())
