"""RMSNorm, right outputs with wrong gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.rms_norm import Optional, RootMeanSquare
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of input was")
class RootIsAConstant(RootMeanSquare):
    """d_input without the term that comes from the root mean square."""

    def d_total(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return rstd * h


@fault("vjp-parity", r"gradient of input was")
class GradientOfLayerNorm(RootMeanSquare):
    """d_input subtracts the mean of h too, as LayerNorm does."""

    def d_total(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return super().d_total(h, xhat, rstd) - rstd * h.mean(-1, keepdim=True)


@fault("vjp-parity", r"gradient of input was")
class ForgetsTheWeight(RootMeanSquare):
    """d_input uses the cotangent of the output as that of xhat."""

    def scaled_cotangent(self, g: Tensor, weight: Optional) -> Tensor:
        return g


@fault("vjp-parity", r"gradient of weight was")
class WeightGradientWithoutTheRow(RootMeanSquare):
    """d_weight is the sum of the cotangents, without xhat."""

    def d_weight(self, g: Tensor, xhat: Tensor) -> Tensor:
        return super().d_weight(g, torch.ones_like(xhat))


@fault("vjp-parity", r"gradient of weight was")
class MeanOverRows(RootMeanSquare):
    """The gradient of the weight is a mean over the rows, not a sum."""

    def d_weight(self, g: Tensor, xhat: Tensor) -> Tensor:
        return super().d_weight(g, xhat) / max(xhat.numel() // max(xhat.shape[-1], 1), 1)


@fault("vjp-parity", r"gradient of (input|residual) was")
class ForgetsTheNewResidual(RootMeanSquare):
    """The cotangent of the new residual does not reach input and residual."""

    def with_residual(self, d_total: Tensor, of_total: Tensor) -> Tensor:
        return d_total


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(RootMeanSquare):
    """A second differentiation treats xhat as a constant."""

    def d_total(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        return super().d_total(h, xhat.detach(), rstd.detach())


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(RootMeanSquare):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = torch.as_strided(g, (g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)
