"""Argument checks of embedding: indices of any rank."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import check_kind


def check_embedding_arguments(weight: Tensor, indices: Tensor) -> None:
    """Raise TypeError or ValueError unless weight is a matrix of real numbers and indices are int64 beside it."""
    check_kind("embedding: weight", weight, "(entries, features)", "weight", weight)
    if weight.dim() != 2:
        raise ValueError(
            f"embedding: weight was of rank {weight.dim()} with shape {tuple(weight.shape)}, but should be of rank 2: "
            "(entries, features)"
        )
    check_kind("embedding: indices", indices, "any", "weight", weight, torch.int64)
