"""linear_act, right outputs with wrong gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.zoo.honest.linear_act import Layer
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of (input|weight|bias) was")
class SlopeAtZero(Layer):
    """relu'(0) is 1: the mask is z >= 0."""

    def d_z(self, g: Tensor, x: Tensor, activation: str) -> Tensor:
        return torch.where(x >= 0, g, torch.zeros_like(g)) if activation == "relu" else super().d_z(g, x, activation)


@fault("vjp-parity", r"gradient of")
class GeluSlopeWithoutTheDensity(Layer):
    """The slope of gelu is Phi alone."""

    def gelu_slope(self, x: Tensor) -> Tensor:
        return 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


@fault("vjp-parity", r"gradient of")
class GeluSlopeByTanh(Layer):
    """The slope is that of the gelu approximated by tanh."""

    def gelu_slope(self, x: Tensor) -> Tensor:
        k, c = math.sqrt(2 / math.pi), 0.044715
        t = torch.tanh(k * (x + c * x * x * x))
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * k * (1 + 3 * c * x * x)


@fault("vjp-parity", r"gradient of")
class SiluSlopeIsTheSigmoids(Layer):
    """The slope of silu is s (1 - s), that of the sigmoid."""

    def silu_slope(self, x: Tensor) -> Tensor:
        s = torch.sigmoid(x)
        return s * (1 - s)


@fault("vjp-parity", r"gradient of bias was")
class MeanOfTheBias(Layer):
    """The gradient of the bias is a mean over the batch, not a sum."""

    def d_bias(self, d_z: Tensor) -> Tensor:
        return d_z.mean(0)


@fault("vjp-parity", r"gradient of weight was")
class WeightGradientOfTheFirstRows(Layer):
    """The gradient of the weight leaves out the last row of the batch."""

    def d_weight(self, d_z: Tensor, input: Tensor) -> Tensor:
        return super().d_weight(d_z[:-1], input[:-1])


@fault("vjp-parity", r"gradient of input was")
class InputGradientLosesTheSign(Layer):
    """The gradient of the input is computed of the absolute values of d_z."""

    def d_input(self, d_z: Tensor, weight: Tensor) -> Tensor:
        return super().d_input(d_z.abs(), weight)


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(Layer):
    """A second differentiation treats the slope as a constant."""

    def d_z(self, g: Tensor, x: Tensor, activation: str) -> Tensor:
        return super().d_z(g, x.detach(), activation)


@fault("layouts", r"laid out contiguously come out right|gradient of")
class ReadsCotangentsAsContiguous(Layer):
    """An expanded or transposed cotangent is read as if it lay contiguously."""

    def cotangent(self, g: Tensor) -> Tensor:
        if g.is_contiguous():
            return g
        storage = torch.as_strided(g, (g.untyped_storage().nbytes() // g.element_size(),), (1,), 0)
        return storage.repeat(-(-g.numel() // storage.numel()))[: g.numel()].view(g.shape)


class _FirstRowForAll(Layer):
    def cotangent(self, g: Tensor) -> Tensor:
        return g[:1].expand(g.shape) if g.shape[0] >= 9 and g.stride(-1) == 0 else g


@fault("gradient-subsets", r"gradient of input was .*rows: batch=49.*cotangent of output columns")
class ScalarWhereTheWeightIsFrozen(Layer):
    """If the weight is frozen, a cotangent that is equal in all columns is taken for a scalar, from 9 rows on."""

    def __call__(self, input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu") -> Tensor:
        return Layer.__call__(self if weight.requires_grad else _FirstRowForAll(), input, weight, bias, activation)
