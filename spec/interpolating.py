"""Linear interpolation (F.interpolate: linear, bilinear, trilinear) as sums of two weighted elements in each dimension.

An element of the result lies between two elements of the input, at a place that is computed in the accumulator's dtype.
The weights are the distances to both, so they have the errors of the place. Backward adds up what forward took apart.

Source: PyTorch's documentation of F.interpolate and nn.Upsample (`align_corners`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _places(n: int, count: int, align_corners: bool, scale: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """For each of `count` results: the element before it among `n`, the element after it, and how far it is beyond."""
    steps = torch.arange(count, dtype=torch.float64)
    if align_corners:
        at = steps * ((n - 1) / (count - 1) if count > 1 else 0.0)
    else:
        at = ((steps + 0.5) * (1 / scale if scale else n / count) - 0.5).clamp(min=0.0)
    before = at.floor().clamp(max=n - 1).long()
    return before, (before + 1).clamp(max=n - 1), (at - before).clamp(0.0, 1.0)


def _between(x: Tensor, dim: int, count: int, align_corners: bool, scale: float | None) -> Tensor:
    before, after, beyond = _places(x.shape[dim], count, align_corners, scale)
    rows = x.movedim(dim, -1)
    return ((1 - beyond) * rows.index_select(-1, before) + beyond * rows.index_select(-1, after)).movedim(-1, dim)


def _added(g: Tensor, dim: int, n: int, align_corners: bool, scale: float | None) -> Tensor:
    before, after, beyond = _places(n, g.shape[dim], align_corners, scale)
    rows = g.movedim(dim, -1)
    sums = rows.new_zeros(*rows.shape[:-1], n)
    return sums.index_add(-1, before, (1 - beyond) * rows).index_add(-1, after, beyond * rows).movedim(-1, dim)


def forward(x: Tensor, output_size: Sequence[int], align_corners: bool, *scales: float | None) -> Tensor:
    """The result, of `output_size` in the last dimensions."""
    first = x.dim() - len(output_size)
    for place, count in enumerate(output_size):
        x = _between(x, first + place, count, align_corners, _of(scales, place))
    return x


def backward(
    g: Tensor, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool, *scales: float | None
) -> Tensor:
    """The gradient of the input, of `input_size` in all dimensions."""
    first = g.dim() - len(output_size)
    for place in reversed(range(len(output_size))):
        g = _added(g, first + place, input_size[first + place], align_corners, _of(scales, place))
    return g


def _of(scales: Sequence[float | None], place: int) -> float | None:
    return scales[place] if place < len(scales) else None


#: What each operation of PyTorch is.
STEPS: Mapping[Any, Callable[..., Any]] = {
    _aten.upsample_linear1d.default: forward,
    _aten.upsample_linear1d_backward.default: backward,
    _aten.upsample_bilinear2d.default: forward,
    _aten.upsample_bilinear2d_backward.default: backward,
    _aten.upsample_trilinear3d.default: forward,
    _aten.upsample_trilinear3d_backward.default: backward,
}
