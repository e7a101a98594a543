"""GroupNorm, wrong outputs: other groups, another variance, another place for eps, weight and bias."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.group_norm import Groups, Optional
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class InterleavedGroups(Groups):
    """Group k has the channels k, k + num_groups, ..., not num_groups consecutive blocks."""

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        return x.unflatten(1, (x.shape[1] // num_groups, num_groups)).transpose(1, 2).flatten(2)

    def ungrouped(self, groups: Tensor, num_groups: int, like: Tensor) -> Tensor:
        depth = like.shape[1] // num_groups
        return groups.unflatten(2, (depth, *like.shape[2:])).transpose(1, 2).reshape(like.shape)


@fault("forward-parity", WRONG)
class OneGroup(Groups):
    """All channels are one group, whatever number is asked for."""

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        return super().grouped(x, 1)


@fault("forward-parity", WRONG)
class EachChannelForItself(Groups):
    """Every channel is normalised by itself, as in InstanceNorm."""

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        return super().grouped(x, x.shape[1])


@fault("forward-parity", r"group_norm\[weight-only\]")
class OneChannelForVectors(Groups):
    """An input without further dimensions is normalised over the batch, as in BatchNorm."""

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        return x.t() if x.dim() == 2 else super().grouped(x, num_groups)

    def ungrouped(self, groups: Tensor, num_groups: int, like: Tensor) -> Tensor:
        return groups.t() if like.dim() == 2 else super().ungrouped(groups, num_groups, like)


@fault("forward-parity", WRONG)
class UnbiasedVariance(Groups):
    """The variance divides by N - 1."""

    def variance(self, groups: Tensor, mean: Tensor) -> Tensor:
        count = max(groups.shape[-1], 2)
        return super().variance(groups, mean) * count / (count - 1)


@fault("forward-parity", r"values large-mean")
class CancellingVariance(Groups):
    """The variance is E[x^2] - E[x]^2, which cancels if the mean is large."""

    def variance(self, groups: Tensor, mean: Tensor) -> Tensor:
        return (groups.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)


@fault("forward-parity", WRONG)
class EpsOutsideTheRoot(Groups):
    """1 / (sqrt(variance) + eps): eps is added after the square root."""

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return 1 / (torch.sqrt(variance) + eps)


@fault("forward-parity", r"group_norm\[(32-groups|no-affine)\]")
class IgnoresEps(Groups):
    """Whatever eps is given, 1e-5 is used."""

    def eps(self, eps: float) -> float:
        return 1e-5


@fault("forward-parity", r"group_norm\[images\]")
class WeightOfTheGroup(Groups):
    """All channels of a group are scaled by the weight of the first one."""

    def affine(self, xhat: Tensor, weight: Optional, bias: Optional) -> Tensor:
        if weight is not None and xhat.shape[1] % 2 == 0:
            weight = weight[::2].repeat_interleave(2)
        return super().affine(xhat, weight, bias)


@fault("forward-parity", r"group_norm\[weight-only\]")
class NoWeightWithoutBias(Groups):
    """Without a bias the weight is left out too."""

    def affine(self, xhat: Tensor, weight: Optional, bias: Optional) -> Tensor:
        return xhat if bias is None else super().affine(xhat, weight, bias)


@fault("forward-parity", r"values non-finite")
class HidesNotANumber(Groups):
    """NaN and infinities are replaced by 0 before anything is computed."""

    def wide(self, input: Tensor) -> Tensor:
        return torch.nan_to_num(super().wide(input), nan=0.0, posinf=0.0, neginf=0.0)


@fault("forward-parity", WRONG, dtype=torch.bfloat16)
class StatisticsInBfloat16(Groups):
    """Mean and 1/sqrt are kept in bfloat16, as where statistics have the dtype of the input."""

    def mean(self, groups: Tensor) -> Tensor:
        return super().mean(groups).to(torch.bfloat16).to(groups.dtype)


@fault("sizes", r"depth-\d+|width-\d+|feature-map|wide|sd-1\.5")
class ForgetsTheTail(Groups):
    """The mean of a group of more than 64 elements leaves out those behind the last full block of 64."""

    def mean(self, groups: Tensor) -> Tensor:
        count = groups.shape[-1]
        return super().mean(groups[..., : count // 64 * 64] if count > 64 else groups)


@fault("invariants", r"a batch is the sum of its rows|permuting|groups of 3 and 1|a weight of 0")
class StatisticsOfTheFirstSample(Groups):
    """Every sample is normalised by the mean of the first one."""

    def mean(self, groups: Tensor) -> Tensor:
        own = super().mean(groups)
        return own[:1].expand_as(own) if groups.shape[0] else own


@fault("rejects-wrong-calls", r"num_groups that does not divide .* silently accepted")
class RoundsTheGroupsDown(Groups):
    """A number of groups that does not divide the channels becomes the next lower one that does."""

    def check(self, input: Tensor, num_groups: int, weight: Optional, bias: Optional) -> None:
        super().check(input, 1 if num_groups else 0, weight, bias)

    def grouped(self, x: Tensor, num_groups: int) -> Tensor:
        return super().grouped(x, next(k for k in range(num_groups, 0, -1) if x.shape[1] % k == 0))
