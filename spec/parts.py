"""Process a large tensor part by part, so that all that is computed of one part stays in a processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

#: Elements of one part.
_PART = 2**16


def parts_of(tensor: Tensor, elements: int = _PART) -> Iterator[Any]:
    """Indices of parts of a tensor: slices of its rows with about that many elements; `...`, the whole, if small."""
    if tensor.numel() <= elements or tensor.dim() == 0:
        yield ...
        return
    rows = max(1, elements * tensor.shape[0] // tensor.numel())
    for begin in range(0, tensor.shape[0], rows):
        yield slice(begin, begin + rows)
