"""Embedding as LigerEmbeddingFunction, which the package keeps among what is experimental."""

from __future__ import annotations

from liger_kernel.ops import LigerEmbeddingFunction
from torch import Tensor

from backends._python.embedding import check_embedding_arguments
from backends.base import PythonFunction


def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of weight at the indices."""
    check_embedding_arguments(weight, indices)
    output: Tensor = LigerEmbeddingFunction.apply(weight, indices)
    return output


IMPLEMENTATION = PythonFunction(embedding)
