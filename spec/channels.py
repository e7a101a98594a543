"""Channels of a tensor (batch, channels, ...): in groups, and met by vectors of one number for each channel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spec.blocks import one_rounding, wide
from spec.contract import Refusal


def grouped(tensor: Tensor, num_groups: int) -> Tensor:
    """(batch, num_groups, elements of a group)."""
    return tensor.reshape(tensor.shape[0], num_groups, math.prod(tensor.shape[1:]) // num_groups)


def per_channel(vector: Tensor, like: Tensor) -> Tensor:
    """(channels,) as (channels, 1, ...), which meets the second dimension of `like`."""
    return vector.reshape(-1, *(1 for _ in like.shape[2:]))


def over_channels(tensor: Tensor) -> Tensor:
    """The sum over all but the second dimension."""
    return tensor.sum((0, *range(2, tensor.dim())))


def lost_of_bias(groups: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor, like: Tensor) -> Tensor:
    """0; under rounding, what GroupNorm loses of the bias: up to u |mean a|, of one sign where biases are equal.

    Kernels compute output as x a + (b - mean a) with a = rstd w, one product and one sum for each element. The sum
    b - mean a rounds b to a multiple of the last place of mean a. While |mean a| stays between the same two powers of
    2, the error is always the distance of b from such a multiple. So it has one sign for all groups of a channel, and
    for channels of equal b. It is up to u |mean a|, and no number of elements averages it away. Where groups have one
    element, xhat is 0, and this error is all there is.
    """
    with wide(*(tensor.detach() for tensor in (groups, rstd, bias))) as (x, r, b):
        shift = (x.mean(-1, keepdim=True) * r).expand_as(x).reshape(like.shape)
        size = (shift if weight is None else shift * per_channel(weight.detach(), like)).abs()
        return size * per_channel(one_rounding(torch.ones_like(b), beside=b), like)


def lost_of_weight(g: Tensor, input: Tensor, groups: Tensor, rstd: Tensor) -> Tensor:
    """0; under rounding, what GroupNorm loses of the gradient of the weight where the mean of a group is large.

    Kernels compute it of sums over each channel of a sample, rstd (sum(g x) - mean sum(g)), and so does autograd of
    x a + (b - mean a). Beside a large mean the two cancel, so an error of sum(g x) is large. It is common to the
    channel, and no error of the mean makes it: that one cancels where g is the same in all channels of a group.
    """
    with wide(g.detach(), input.detach(), rstd.detach()) as (wide_g, x, r):
        of_channels = r.expand_as(groups).reshape(input.shape)
        further = tuple(range(2, input.dim()))
        sizes = (wide_g * x * of_channels).abs()
        sums = sizes.sum(further) * math.sqrt(math.prod(input.shape[2:])) if further else sizes
        return (sums * 1 - sums).sum(0)


def refusals(num_groups: int) -> tuple[Refusal, ...]:
    """Calls with a wrong number of groups, and with a tensor that has no channels."""

    def with_groups(wrong: Callable[[int], int]) -> Callable[..., Any]:
        return lambda function, input, *affine: function(input, wrong(input.shape[1]), *affine)

    return (
        Refusal("num_groups that does not divide the channels", "num_groups", with_groups(lambda c: c - 1), (r"\d",)),
        Refusal("num_groups of 0", "num_groups", with_groups(lambda _: 0), ("0",)),
        Refusal("input of one dimension", "input", lambda function, input, *_: function(input.flatten(), num_groups)),
    )
