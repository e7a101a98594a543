"""Large tensors a part at a time, so that all that is computed of a part stays in a processor's cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

#: Elements of a part.
_PART = 2**16


def parts_of(tensor: Tensor) -> Iterator[Any]:
    """Indices of parts of the tensor, rows of it, each with some 2^16 elements; `...`, all of it, for a small one."""
    if tensor.numel() <= _PART or tensor.dim() == 0:
        yield ...
        return
    rows = max(1, _PART * tensor.shape[0] // tensor.numel())
    for begin in range(0, tensor.shape[0], rows):
        yield slice(begin, begin + rows)
