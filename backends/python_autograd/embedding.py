"""Embedding as a selection of rows; autograd derives the gradient, which half types add up in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.embedding import check_embedding_arguments
from backends.base import PythonFunction


def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of weight at the indices."""
    check_embedding_arguments(weight, indices)
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    rows = wide.index_select(0, indices.reshape(-1)).to(weight.dtype)
    return rows.reshape(*indices.shape, weight.shape[1])


IMPLEMENTATION = PythonFunction(embedding)
