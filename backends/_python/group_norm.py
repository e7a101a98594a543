"""Argument checks of group_norm: the caller chooses rank and groups, so shapes are checked against each other."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_kind


def check_group_norm_arguments(input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None) -> None:
    """Raise TypeError or ValueError unless weight and bias have an element for each channel, and groups divide them."""
    check_kind("group_norm: input", input, "(batch, channels, *)", "input", input)
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise ValueError(
            f"group_norm: input was of rank {len(shape)} with shape {shape}, but should be of rank 2 or more: "
            "(batch, channels, *)"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        check_kind(f"group_norm: {name}", tensor, "(channels,)", "input", input)
        if tuple(tensor.shape) != shape[1:2]:
            rank = "" if tensor.dim() == 1 else f"of rank {tensor.dim()} with shape "
            raise ValueError(
                f"group_norm: {name} was {rank}{tuple(tensor.shape)}, but should be (channels,) = {shape[1:2]}, of "
                f"rank 1, where input is {shape}"
            )
    if num_groups < 1 or shape[1] % num_groups:
        raise ValueError(
            f"group_norm: num_groups was {num_groups}, but should be a divisor of {shape[1]}, the channels of input, "
            f"whose shape is {shape}"
        )


def per_channel(vector: Tensor, like: Tensor) -> Tensor:
    """(channels,) as (channels, 1, ...), which meets the second dimension of `like`."""
    return vector.reshape(-1, *(1 for _ in range(like.dim() - 2)))
