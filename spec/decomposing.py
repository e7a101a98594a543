"""Operations of PyTorch that consist of others, and how: the model of rounding knows the others.

A softmax is one operation to PyTorch. Its error is not one rounding: it adds up exponentials and divides. So a mode
that models errors evaluates such an operation as the steps that PyTorch itself gives for it (`torch._decomp`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from spec import bags, fourier, interpolating

_aten = torch.ops.aten

#: What is evaluated step by step: normalisations, losses, activations, and their backward.
_COMPOSED = (
    _aten._adaptive_avg_pool2d,
    _aten._log_softmax,
    _aten._log_softmax_backward_data,
    _aten._fused_rms_norm_backward,
    _aten._native_batch_norm_legit.no_stats,
    _aten._softmax,
    _aten._softmax_backward_data,
    _aten._prelu_kernel,
    _aten._prelu_kernel_backward,
    _aten.addcdiv,
    _aten.addcmul,
    _aten.addmv,
    _aten.addr,
    _aten.binary_cross_entropy,
    _aten.binary_cross_entropy_backward,
    _aten.binary_cross_entropy_with_logits,
    _aten.elu_backward,
    _aten.gelu,
    _aten.gelu_backward,
    _aten.glu,
    _aten.glu_backward,
    _aten.hardsigmoid,
    _aten.hardsigmoid_backward,
    _aten.hardswish,
    _aten.hardswish_backward,
    _aten.hardtanh_backward,
    _aten.huber_loss,
    _aten.huber_loss_backward,
    _aten.leaky_relu,
    _aten.leaky_relu_backward,
    _aten.log_sigmoid_backward,
    _aten.linalg_vector_norm,
    _aten.linalg_cross,
    _aten.log_sigmoid_forward,
    _aten.logsumexp,
    _aten.mish,
    _aten.mish_backward,
    _aten.mse_loss,
    _aten.mse_loss_backward,
    _aten.nansum,
    _aten.native_batch_norm_backward,
    _aten.native_group_norm,
    _aten.native_group_norm_backward,
    _aten.native_layer_norm,
    _aten.native_layer_norm_backward,
    _aten.nll_loss_backward,
    _aten.nll_loss_forward,
    _aten.norm,
    _aten.sigmoid_backward,
    _aten.silu,
    _aten.silu_backward,
    _aten.smooth_l1_loss,
    _aten.smooth_l1_loss_backward,
    _aten.soft_margin_loss,
    _aten.soft_margin_loss_backward,
    _aten.softplus,
    _aten.softplus_backward,
    _aten.std,
    _aten.tanh_backward,
    _aten.threshold_backward,
    _aten.trace,
    _aten.var,
    _aten.var_mean,
)


def _variance(x: Tensor, dims: Sequence[int] | None, correction: float = 1.0, output_dtype: Any = None) -> Tensor:
    """In two passes; PyTorch has one operation for it."""
    del output_dtype
    every = list(range(x.dim())) if dims is None else list(dims)
    deviation = x - x.mean(every, keepdim=True)
    return (deviation * deviation).sum(every) / (math.prod(x.shape[dim] for dim in every) - correction)


def _safe_softmax(x: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    """A softmax that is 0 where every element is -inf, as attention has it for a row that is masked throughout."""
    nothing = (x == -math.inf).all(dim, keepdim=True)
    return torch.where(nothing, torch.zeros_like(x), torch.softmax(x, dim, dtype=dtype))


def _sum_of_products(x: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha (sum of left @ right over the batch)."""
    product = torch.bmm(left, right).sum(0)
    return beta * x + alpha * product


def _distances(x: Tensor, y: Tensor, p: float, mode: int | None) -> Tensor:
    """The p-norms of the differences of every two rows."""
    del mode
    return torch.linalg.vector_norm(x.unsqueeze(-2) - y.unsqueeze(-3), p, -1)  # type: ignore[no-any-return]


def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Batch norm with running statistics, which it would change in training; no result depends on that change."""
    own = _aten._native_batch_norm_legit.no_stats
    if training:
        return own(x, weight, bias, True, momentum, eps)
    shape = [1, -1, *[1] * (x.dim() - 2)]
    rstd = torch.rsqrt(variance + eps)
    result = (x - mean.view(shape)) * rstd.view(shape)
    result = result if weight is None else result * weight.view(shape)
    result = result if bias is None else result + bias.view(shape)
    return result, x.new_empty(0), x.new_empty(0)


def _rounded_quotient(x: Tensor, y: Any, *, rounding_mode: str) -> Tensor:
    """A quotient that errs, rounded to a whole number: another one than the exact quotient's if that is nearly one."""
    quotient: Tensor = x / y
    return quotient.floor() if rounding_mode == "floor" else quotient.trunc()


@cache
def _known() -> Mapping[Any, Callable[..., Any]]:
    prims = torch.ops.prims
    return {
        **get_decompositions(list(_COMPOSED)),
        **bags.STEPS,
        **fourier.STEPS,
        **interpolating.STEPS,
        _aten._cdist_forward.default: _distances,
        _aten._native_batch_norm_legit.default: _batch_norm,
        _aten._safe_softmax.default: _safe_softmax,
        _aten.addbmm.default: _sum_of_products,
        _aten.div.Tensor_mode: _rounded_quotient,
        _aten.floor_divide.default: partial(_rounded_quotient, rounding_mode="floor"),
        _aten.polar.default: lambda size, angle: torch.complex(size * torch.cos(angle), size * torch.sin(angle)),
        prims.var.default: _variance,
        prims.sum.default: lambda x, dims, output_dtype=None: x.sum(list(dims)),  # noqa: ARG005
        prims.div.default: lambda x, y: x / y,
    }


@cache
def steps(func: Any) -> Callable[..., Any] | None:
    """The function that evaluates an operation step by step; None for one that is a step itself."""
    found = _known().get(func)
    if found is None and func.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        return partial(_composite, func)  # it arrives whole where nothing is recorded for autograd
    return found


@cache
def functional(func: Any) -> Any:
    """The operation that returns what an in-place one writes into its first argument; None if there is none."""
    name = func._schema.name.removeprefix("aten::")
    if not (func._schema.is_mutable and name.endswith("_")):
        return None
    packet = getattr(_aten, name.removesuffix("_"), None)
    return getattr(packet, func._overloadname, None)


def _composite(func: Any, *args: Any, **kwargs: Any) -> Any:
    return func.decompose(*args, **kwargs)
