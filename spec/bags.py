"""Sums, means and maxima of rows of a table by bags of indices (F.embedding_bag), in steps with known rounding errors.

`offsets` says where each bag begins in `indices`. Of a maximum, forward says which row each element comes from: the
first one of the largest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten
_SUM, _MEAN, _MAX = 0, 1, 2


def _places(indices: Tensor, offsets: Tensor, include_last_offset: bool) -> tuple[Tensor, Tensor]:
    """The bag of each index, and how many there are in each bag."""
    begins = offsets[:-1] if include_last_offset else offsets
    ends = torch.cat((begins[1:], begins.new_tensor([len(indices)])))
    sizes = ends - begins
    return torch.repeat_interleave(torch.arange(len(begins)), sizes), sizes


def forward(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bags, and what backward needs of the indices."""
    del scale_grad_by_freq, sparse
    bags, sizes = _places(indices, offsets, include_last_offset)
    rows = weight.index_select(0, indices)
    counted = indices != padding_idx
    if padding_idx >= 0:
        rows = torch.where(counted[:, None], rows, 0.0)
        sizes = torch.zeros_like(sizes).index_add(0, bags, counted.to(sizes.dtype))
    if mode == _MAX:
        found, largest = _maxima(rows, bags, counted, len(sizes))
        return found, bags, sizes, indices[largest]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    sums = torch.zeros(len(sizes), weight.shape[1], dtype=weight.dtype).index_add(0, bags, rows)
    found = sums / sizes.clamp(min=1)[:, None] if mode == _MEAN else sums
    return found, bags, sizes, torch.empty(0, dtype=indices.dtype)


def _maxima(rows: Tensor, bags: Tensor, counted: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest element of each bag in each column, 0 of an empty bag; and the row that it is in."""
    if not len(rows):
        return rows.new_zeros(count, rows.shape[1]), torch.zeros(count, rows.shape[1], dtype=torch.int64)
    inside = (bags == torch.arange(count)[:, None]) & counted
    candidates = torch.where(inside[:, :, None], rows, -math.inf)
    found = torch.where(inside.any(1)[:, None], candidates.amax(1), 0.0)
    return found, candidates.argmax(1)


def backward(
    grad: Tensor,
    indices: Tensor,
    offset2bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    num_weights: int,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the table."""
    if mode == _MAX:
        present = torch.where((bag_size > 0)[:, None], grad, 0.0)
        return torch.zeros(num_weights, grad.shape[1], dtype=grad.dtype).scatter_add(0, maximum_indices, present)
    rows = grad.index_select(0, offset2bag)
    if mode == _MEAN:
        rows = rows / bag_size.index_select(0, offset2bag).clamp(min=1)[:, None]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    if scale_grad_by_freq:
        rows = rows / torch.bincount(indices, minlength=num_weights).index_select(0, indices)[:, None]
    if padding_idx >= 0:
        rows = torch.where((indices != padding_idx)[:, None], rows, 0.0)
    return torch.zeros(num_weights, grad.shape[1], dtype=grad.dtype).index_add(0, indices, rows)


def _with_offsets(grad: Tensor, indices: Tensor, offsets: Tensor, *rest: Any) -> Tensor:
    """`backward` with the arguments of the operation that may return a sparse tensor."""
    bags, sizes, largest, rows, by_frequency, mode, sparse, *others = rest
    del offsets
    if sparse:
        raise NotImplementedError("F.embedding_bag(sparse=True): a sparse gradient is not modelled")
    return backward(grad, indices, bags, sizes, largest, rows, by_frequency, mode, *others)


def backward_of_weights(
    grad: Tensor,
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    offset2bag: Tensor,
    mode: int,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient of the weight of each index."""
    del offsets, mode
    products = (grad.index_select(0, offset2bag) * weight.index_select(0, indices)).sum(1)
    return torch.where(indices != padding_idx, products, 0.0) if padding_idx >= 0 else products


#: What each operation of PyTorch is.
STEPS: Mapping[Any, Callable[..., Any]] = {
    _aten._embedding_bag.default: forward,
    _aten._embedding_bag_forward_only.default: forward,
    _aten._embedding_bag_backward.default: _with_offsets,
    _aten._embedding_bag_dense_backward.default: backward,
    _aten._embedding_bag_per_sample_weights_backward.default: backward_of_weights,
}
