"""LayerNorm, wrong outputs: another mean, another variance, another place for eps, weight and bias."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class UnbiasedVariance(Norm):
    """The variance divides by N - 1."""

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        count = max(x[(0,) * (x.dim() - len(dims))].numel(), 2) if x.numel() else 2
        return super().variance(x, mean, dims) * count / (count - 1)


@fault("forward-parity", r"values large-mean", defects=(24,))
class CancellingVariance(Norm):
    """The variance is E[x^2] - E[x]^2, which cancels if the mean is large."""

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        return (x.square().mean(dims, keepdim=True) - mean.square()).clamp(min=0)


@fault("forward-parity", WRONG, defects=(24,))
class NegativeVariance(Norm):
    """E[x^2] - E[x]^2 without a lower bound and without eps: NaN if rounding makes it negative or 0."""

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        return x.square().mean(dims, keepdim=True) - mean.square()

    def eps(self, eps: float) -> float:
        return 0.0


@fault("forward-parity", WRONG)
class EpsOutsideTheRoot(Norm):
    """1 / (sqrt(variance) + eps): eps is added after the square root."""

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return 1 / (torch.sqrt(variance) + eps)


@fault("forward-parity", r"layer_norm\[(no-affine|images)\]")
class IgnoresEps(Norm):
    """Whatever eps is given, 1e-5 is used."""

    def eps(self, eps: float) -> float:
        return 1e-5


@fault("forward-parity", WRONG)
class DividesByTheVariance(Norm):
    """The square root is forgotten."""

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return 1 / (variance + eps)


@fault("forward-parity", WRONG)
class NormalisesTheBatch(Norm):
    """Mean and variance are taken over the rows of the batch, as in batch normalisation."""

    def dims(self, input: Tensor, normalized_shape: object) -> Dims:
        dims = super().dims(input, normalized_shape)  # type: ignore[arg-type]
        return (-input.dim(),) if input.dim() > len(dims) else dims


@fault("forward-parity", r"layer_norm\[images\]", defects=(27,))
class NormalisesTheLastDimensionAlone(Norm):
    """Only the last of the normalised dimensions is normalised: wrong only if there are several."""

    def dims(self, input: Tensor, normalized_shape: object) -> Dims:
        return (-1,)


@fault("forward-parity", WRONG)
class BiasBeforeWeight(Norm):
    """(xhat + b) w instead of xhat w + b."""

    def affine(self, xhat: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        shifted = xhat if bias is None else xhat + bias
        return shifted if weight is None else shifted * weight


@fault("forward-parity", r"layer_norm\[vector\]")
class NoBiasWithoutWeight(Norm):
    """Without a weight the bias is left out too."""

    def affine(self, xhat: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        return xhat if weight is None else super().affine(xhat, weight, bias)


@fault("forward-parity", r"layer_norm\[weight-only\]")
class NoWeightWithoutBias(Norm):
    """Without a bias the weight is left out too."""

    def affine(self, xhat: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        return xhat if bias is None else super().affine(xhat, weight, bias)


@fault("forward-parity", r"values non-finite")
class HidesNotANumber(Norm):
    """NaN is replaced by 0 before anything is computed."""

    def wide(self, input: Tensor) -> Tensor:
        return torch.nan_to_num(super().wide(input), nan=0.0, posinf=0.0, neginf=0.0)


@fault("invariants", r"weight of 0 leaves the bias|rows of 3 and 1|a batch is the sum of its rows|permuting")
class StatisticsOfTheFirstRow(Norm):
    """Every row is normalised by the mean of the first one."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        own = super().mean(x, dims)
        return own[:1].expand_as(own) if x.dim() > len(dims) and x.shape[0] else own


@fault("sizes", r"features-\d+")
class ForgetsTheTail(Norm):
    """The mean of a row of more than 8 elements leaves out the elements behind the last full vector of 8."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        if len(dims) > 1 or x.shape[-1] <= 8:
            return super().mean(x, dims)
        return x[..., : x.shape[-1] // 8 * 8].mean(-1, keepdim=True)
