"""Embedding as F.embedding."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.embedding import check_embedding_arguments
from backends.base import PythonFunction


def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of weight at the indices."""
    check_embedding_arguments(weight, indices)
    return F.embedding(indices, weight)


IMPLEMENTATION = PythonFunction(embedding)
