"""Embedding as flag_gems.embedding and embedding_backward: ATen's embedding and its backward, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from backends._python.embedding import check_embedding_arguments
from backends.base import PythonFunction
from backends.flag_gems import _package
from backends.flag_gems.joined import joined


def embedding(weight: Tensor, indices: Tensor) -> Tensor:
    """The rows of weight at the indices."""
    check_embedding_arguments(weight, indices)
    entries = weight.shape[0]

    def forward(table: Tensor, places: Tensor) -> Any:
        return (_package.flag_gems.embedding(table, places),)

    def backward(tensors: Sequence[Tensor | None], _: Any, cotangent: Tensor, _wanted: Sequence[bool]) -> Any:
        return _package.flag_gems.embedding_backward(cotangent.contiguous(), tensors[1], entries), None

    return joined(forward, backward, weight, indices)


IMPLEMENTATION = PythonFunction(embedding)
