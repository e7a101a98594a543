"""RMSNorm, wrong outputs: another mean square, another place for eps, weight and residual."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.rms_norm import Optional, RootMeanSquare
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class SubtractsTheMean(RootMeanSquare):
    """The variance in place of the mean square, as in LayerNorm."""

    def mean_square(self, x: Tensor) -> Tensor:
        return (x - x.mean(-1, keepdim=True)).square().mean(-1, keepdim=True)


@fault("forward-parity", WRONG)
class SumOfSquares(RootMeanSquare):
    """The sum of the squares is not divided by N."""

    def mean_square(self, x: Tensor) -> Tensor:
        return x.square().sum(-1, keepdim=True)


@fault("forward-parity", WRONG)
class EpsOutsideTheRoot(RootMeanSquare):
    """1 / (sqrt(mean square) + eps): eps is added after the square root."""

    def rstd(self, mean_square: Tensor, eps: float) -> Tensor:
        return 1 / (torch.sqrt(mean_square) + eps)


@fault("forward-parity", WRONG)
class DividesByTheMeanSquare(RootMeanSquare):
    """The square root is forgotten."""

    def rstd(self, mean_square: Tensor, eps: float) -> Tensor:
        return 1 / (mean_square + eps)


@fault("forward-parity", r"rms_norm\[(no-weight|vector|residual)\]")
class IgnoresEps(RootMeanSquare):
    """Whatever eps is given, 1e-6 is used."""

    def eps(self, eps: float) -> float:
        return 1e-6


@fault("forward-parity", WRONG)
class WeightPlusOne(RootMeanSquare):
    """The row is scaled by 1 + w, as in Gemma."""

    def scaled(self, xhat: Tensor, weight: Optional) -> Tensor:
        return xhat if weight is None else xhat * (1 + weight)


@fault("forward-parity", r"values (outlier|large-values)", dtype=torch.float16)
class SquaresInHalf(RootMeanSquare):
    """The squares are computed in the dtype: those of float16 overflow above 256."""

    def mean_square(self, x: Tensor) -> Tensor:
        return x.to(torch.float16).square().to(x.dtype).mean(-1, keepdim=True)


@fault("forward-parity", r"total was .* but should be")
class ReturnsTheInputAsResidual(RootMeanSquare):
    """The new residual is the normalised row, not the sum."""

    def new_residual(self, total: Tensor, output: Tensor) -> Tensor:
        return output.clone()


@fault("forward-parity", WRONG)
class MeanOfInputAndResidual(RootMeanSquare):
    """The mean square is that of half the row, as if input and residual were averaged."""

    def mean_square(self, x: Tensor) -> Tensor:
        return super().mean_square(x / 2)


@fault("forward-parity", r"values non-finite")
class HidesNotANumber(RootMeanSquare):
    """NaN and infinities are replaced by 0 before anything is computed."""

    def wide(self, total: Tensor) -> Tensor:
        return torch.nan_to_num(super().wide(total), nan=0.0, posinf=0.0, neginf=0.0)


@fault("sizes", r"features-\d+")
class ForgetsTheTail(RootMeanSquare):
    """The mean square of a row of more than 8 elements leaves out those behind the last full vector of 8."""

    def mean_square(self, x: Tensor) -> Tensor:
        count = x.shape[-1]
        return super().mean_square(x[..., : count // 8 * 8] if count > 8 else x)


@fault("sizes", r"qwen|features-\d+|tokens")
class CountsThePaddedRow(RootMeanSquare):
    """The mean square is divided by the next power of two, the length of the block that a row is read into."""

    def mean_square(self, x: Tensor) -> Tensor:
        padded = 1 << max(x.shape[-1] - 1, 0).bit_length()
        return x.square().sum(-1, keepdim=True) / (padded if x.shape[-1] > 8 else max(x.shape[-1], 1))


@fault("invariants", r"a batch is the sum of its rows|permuting|rows of 2 and -2")
class RootOfTheFirstRow(RootMeanSquare):
    """Every row is divided by the root mean square of the first one."""

    def mean_square(self, x: Tensor) -> Tensor:
        own = super().mean_square(x)
        return own[:1].expand_as(own) if x.dim() > 1 and x.shape[0] else own
