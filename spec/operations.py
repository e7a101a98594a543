"""How the operations of PyTorch round: which move data, which choose, and which add up products or terms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

_aten = torch.ops.aten

#: Operators that move or compare data, without rounding: what holds of a tensor holds of its parts.
LINEAR = frozenset(
    {
        _aten.alias.default,
        _aten.bitwise_and.Tensor,
        _aten.bitwise_not.default,
        _aten.bitwise_or.Tensor,
        _aten.block_diag.default,
        _aten.cat.default,
        _aten.channel_shuffle.default,
        _aten.chunk.default,
        _aten.clone.default,
        _aten.complex.default,
        _aten._conj.default,
        _aten.contiguous.default,
        _aten.detach.default,
        _aten.diag_embed.default,
        _aten.diagonal.default,
        _aten.diagonal_backward.default,
        _aten.embedding.default,
        _aten.eq.Scalar,
        _aten.eq.Tensor,
        _aten.expand.default,
        _aten.flip.default,
        _aten.gather.default,
        _aten.ge.Scalar,
        _aten.ge.Tensor,
        _aten.gt.Scalar,
        _aten.gt.Tensor,
        _aten.im2col.default,
        _aten.imag.default,
        _aten.index.Tensor,
        _aten.index_copy.default,
        _aten.index_select.default,
        _aten.isinf.default,
        _aten.isnan.default,
        _aten.le.Scalar,
        _aten.le.Tensor,
        _aten.lift_fresh.default,
        _aten.lift_fresh_copy.default,
        _aten.logical_and.default,
        _aten.logical_not.default,
        _aten.logical_or.default,
        _aten.lt.Scalar,
        _aten.lt.Tensor,
        _aten.masked_scatter.default,
        _aten.masked_scatter_backward.default,
        _aten.masked_select.default,
        _aten.ne.Scalar,
        _aten.ne.Tensor,
        _aten.neg.default,
        _aten._neg_view.default,
        _aten.permute.default,
        _aten.pixel_shuffle.default,
        _aten.pixel_unshuffle.default,
        _aten.reflection_pad1d.default,
        _aten.reflection_pad2d.default,
        _aten.reflection_pad3d.default,
        _aten.real.default,
        _aten.repeat.default,
        _aten.replication_pad1d.default,
        _aten.replication_pad2d.default,
        _aten.replication_pad3d.default,
        _aten.reshape.default,
        _aten.roll.default,
        _aten.rot90.default,
        _aten.select.int,
        _aten.select_backward.default,
        _aten.slice.Tensor,
        _aten.slice_backward.default,
        _aten.split.Tensor,
        _aten.split_with_sizes.default,
        _aten.squeeze.default,
        _aten.squeeze.dim,
        _aten.squeeze.dims,
        _aten.stack.default,
        _aten.t.default,
        _aten.take.default,
        torch.ops.prims.broadcast_in_dim.default,
        _aten.transpose.int,
        _aten.tril.default,
        _aten.triu.default,
        _aten.unbind.int,
        _aten.unfold.default,
        _aten._unsafe_view.default,
        _aten.unsqueeze.default,
        _aten.upsample_nearest1d.default,
        _aten.upsample_nearest2d.default,
        _aten.upsample_nearest3d.default,
        _aten.view.default,
        _aten.view_as_complex.default,
        _aten.view_as_real.default,
        _aten.where.self,
    }
)
#: Operators that make data.
CREATIONS = frozenset(
    {
        _aten.arange.default,
        _aten.arange.start,
        _aten.arange.start_step,
        _aten.empty.memory_format,
        _aten.empty_like.default,
        _aten.empty_strided.default,
        _aten.eye.default,
        _aten.eye.m,
        _aten.full.default,
        _aten.full_like.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
        _aten.new_full.default,
        _aten.new_ones.default,
        _aten.new_zeros.default,
        _aten.ones.default,
        _aten.ones_like.default,
        _aten.scalar_tensor.default,
        _aten.zeros.default,
        _aten.zeros_like.default,
    }
)
#: Operators whose results are arguments, which one depends on the values or on other arguments; or whole numbers.
CHOICES = frozenset(
    {
        _aten.abs.default,
        _aten.adaptive_max_pool2d.default,
        _aten.adaptive_max_pool3d.default,
        _aten.amax.default,
        _aten.amin.default,
        _aten.aminmax.default,
        _aten.as_strided.default,
        _aten.ceil.default,
        _aten.clamp.default,
        _aten.clamp_max.default,
        _aten.clamp_min.default,
        _aten.constant_pad_nd.default,
        _aten.copy.default,
        _aten.cummax.default,
        _aten.cummin.default,
        _aten.fill.Scalar,
        _aten.fill.Tensor,
        _aten.floor.default,
        _aten.hardshrink_backward.default,
        _aten.index_fill.int_Scalar,
        _aten.index_fill.int_Tensor,
        _aten.kthvalue.default,
        _aten.masked_fill.Scalar,
        _aten.masked_fill.Tensor,
        _aten.max.default,
        _aten.max.dim,
        _aten.max_pool2d_with_indices.default,
        _aten.max_pool3d_with_indices.default,
        _aten.maximum.default,
        _aten.median.default,
        _aten.median.dim,
        _aten.min.default,
        _aten.min.dim,
        _aten.minimum.default,
        _aten.relu.default,
        _aten.round.default,
        _aten.scatter.src,
        _aten.scatter.value,
        _aten.sign.default,
        _aten.softshrink_backward.default,
        _aten.sort.default,
        _aten.sort.stable,
        _aten.topk.default,
        _aten.trunc.default,
        _aten.where.ScalarOther,
        _aten.where.ScalarSelf,
    }
)
#: Operators without rounding. All others round.
MOVES = LINEAR | CREATIONS | CHOICES

#: Operators that compute data of numbers alone: each element is rounded once.
COMPUTED = frozenset(
    {
        _aten.bartlett_window.default,
        _aten.bartlett_window.periodic,
        _aten.blackman_window.default,
        _aten.blackman_window.periodic,
        _aten.hamming_window.default,
        _aten.hamming_window.periodic,
        _aten.hamming_window.periodic_alpha,
        _aten.hamming_window.periodic_alpha_beta,
        _aten.hann_window.default,
        _aten.hann_window.periodic,
        _aten.kaiser_window.default,
        _aten.kaiser_window.periodic,
        _aten.kaiser_window.beta,
        _aten.linspace.default,
        _aten.logspace.default,
    }
)

#: Operators that multiply matrices.
PRODUCTS = frozenset({_aten.mm.default, _aten.bmm.default, _aten.addmm.default, _aten.baddbmm.default})
MEANS = frozenset({_aten.mean.default, _aten.mean.dim})
SUMS = frozenset({_aten.sum.default, _aten.sum.dim_IntList}) | MEANS
#: Sums of as many terms in each element as an index says, or the element's place; means of windows too.
SCATTERS = frozenset(
    {
        _aten._adaptive_avg_pool2d_backward.default,
        _aten.adaptive_max_pool2d_backward.default,
        _aten.adaptive_max_pool3d_backward.default,
        _aten.avg_pool2d.default,
        _aten.avg_pool2d_backward.default,
        _aten.avg_pool3d.default,
        _aten.avg_pool3d_backward.default,
        _aten.col2im.default,
        _aten.cumsum.default,
        _aten.embedding_dense_backward.default,
        _aten.index_add.default,
        _aten.index_put.default,
        _aten.max_pool2d_with_indices_backward.default,
        _aten.max_pool3d_with_indices_backward.default,
        _aten.put.default,
        _aten.reflection_pad1d_backward.default,
        _aten.reflection_pad2d_backward.default,
        _aten.reflection_pad3d_backward.default,
        _aten.replication_pad1d_backward.default,
        _aten.replication_pad2d_backward.default,
        _aten.replication_pad3d_backward.default,
        _aten.scatter_add.default,
        _aten.scatter_reduce.two,
        _aten.unfold_backward.default,
        _aten._unsafe_index_put.default,
        _aten.upsample_nearest1d_backward.default,
        _aten.upsample_nearest2d_backward.default,
        _aten.upsample_nearest3d_backward.default,
    }
)
#: Sums of products of two factors, whose terms a call with ones counts.
OF_TWO = frozenset(
    {
        _aten.convolution.default,
        _aten.convolution_backward.default,
        _aten.dot.default,
        _aten.mv.default,
        _aten.vdot.default,
    }
)
#: Products of all elements of a dimension, or of all.
OVER_ALL = frozenset({_aten.cumprod.default, _aten.prod.default, _aten.prod.dim_int})

#: The means of windows, and the place of the window among their arguments.
_WINDOWS = {
    _aten.avg_pool2d.default: 1,
    _aten.avg_pool2d_backward.default: 2,
    _aten.avg_pool3d.default: 1,
    _aten.avg_pool3d_backward.default: 2,
}


def window(func: Any, args: Sequence[Any]) -> int:
    """How many terms each mean of a window adds up: a call with ones does not count them. 1 for all others."""
    if func is _aten._adaptive_avg_pool2d_backward.default:
        return 4  # a pixel is in two windows of each direction at most
    if func not in _WINDOWS:
        return 1
    lengths, dims = list(args[_WINDOWS[func]]), 2 if "2d" in func._schema.name else 3
    return math.prod(lengths if len(lengths) == dims else lengths * dims)
