"""Offsets of packed parts: `cu_seqlens`, the row pointers of a sparse matrix, the beginnings of bags.

An example shows them: integers of one dimension that do not fall, from 0 to the first length of another tensor. Drawn
one by one, they would fall, and a kernel that takes the lengths of the parts for granted would be called wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def lasts(tensors: Sequence[Tensor | None]) -> dict[int, int]:
    """The places of the tensors of an example that have offsets, each with the last of them."""
    found = dict[int, int]()
    for place, tensor in enumerate(tensors):
        if tensor is None or tensor.is_floating_point() or tensor.dtype == torch.bool or tensor.dim() != 1:
            continue
        if len(tensor) < 2 or int(tensor[0]) != 0 or int(tensor[-1]) < 2 or bool((tensor.diff() < 0).any()):
            continue
        others = (other for other in tensors if other is not None and other is not tensor and other.dim())
        if any(len(other) == int(tensor[-1]) for other in others):
            found[place] = int(tensor[-1])
    return found


def spread(like: Tensor, count: int, high: int) -> Tensor:
    """Offsets of `count` - 1 parts of nearly equal length, from 0 to `high`."""
    return (torch.arange(count) * high // max(count - 1, 1)).to(like.dtype)
