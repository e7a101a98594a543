"""Argument checks of layer_norm: the caller chooses the ranks, so shapes are checked against each other."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from backends.base import check_kind


def check_layer_norm_arguments(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None
) -> None:
    """Raise TypeError or ValueError unless `normalized_shape` ends input's shape and is that of weight and bias."""
    check_kind("layer_norm: input", input, "(*, *normalized_shape)", "input", input)
    wanted = tuple(normalized_shape)
    if not wanted:
        raise ValueError("layer_norm: normalized_shape was (), but should name at least one dimension of input")
    found = tuple(input.shape)[-len(wanted) :]
    if found != wanted:
        raise ValueError(
            f"layer_norm: normalized_shape was {wanted}, but should be the last {len(wanted)} dimensions of input, "
            f"whose shape is {tuple(input.shape)}"
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        check_kind(f"layer_norm: {name}", tensor, "normalized_shape", "input", input)
        if tuple(tensor.shape) != wanted:
            rank = "" if tensor.dim() == len(wanted) else f"of rank {tensor.dim()} with shape "
            raise ValueError(
                f"layer_norm: {name} was {rank}{tuple(tensor.shape)}, but should be normalized_shape = {wanted}, "
                f"of rank {len(wanted)}, where input is {tuple(input.shape)}"
            )
