"""Implementations of the references: a right one of each, and wrong ones of rms_norm."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-6


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, EPS)


def rms_in_float32(x: Tensor, weight: Tensor) -> Tensor:
    """Multiplies by the weight before it rounds to the dtype."""
    wide = x.float()
    return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + EPS) * weight.float()).to(x.dtype)


def cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float) -> Tensor:
    found = torch.log_softmax(logits, -1, dtype=torch.promote_types(logits.dtype, torch.float32))
    smooth = (1 - label_smoothing) * found.gather(-1, labels[:, None])[:, 0] + label_smoothing * found.mean(-1)
    return -smooth.to(logits.dtype)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = torch.einsum("bqd,bkd->bqk", q / q.shape[-1] ** 0.5, k).masked_fill(~mask, -1e4)
    return torch.softmax(scores, -1) @ v


def two_outputs(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    y = scale * x
    return y, F.pad(y, (0, 1)) + F.pad(y.sum(-1, keepdim=True), (y.shape[-1], 0))


# Wrong ones


def eps_outside_the_root(x: Tensor, weight: Tensor) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True).sqrt() + EPS) * weight


def other_eps(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-5)


def mean_over_the_batch(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + EPS) * weight


def no_weight(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), None, EPS) + 0 * weight


def sum_in_place_of_mean(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + EPS) * weight


def centred(x: Tensor, weight: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, None, EPS)


def statistics_in_bfloat16(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt(x.bfloat16().pow(2).mean(-1, keepdim=True) + EPS).to(x.dtype) * weight


def adds_in_its_dtype(x: Tensor, weight: Tensor) -> Tensor:
    """Adds the squares one by one in the dtype of x: in half precision it loses those that come late."""
    total = torch.zeros_like(x[..., :1])
    for column in x.pow(2).split(1, dim=-1):
        total = total + column
    return x * torch.rsqrt(total / max(x.shape[-1], 1) + EPS) * weight


def unbiased(x: Tensor, weight: Tensor) -> Tensor:
    n = max(x.shape[-1] - 1, 1)
    return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) / n + EPS) * weight


def last_row_of_many(x: Tensor, weight: Tensor) -> Tensor:
    found = F.rms_norm(x, (x.shape[-1],), weight, EPS)
    return torch.cat([found[:-1], x[-1:]]) if x.shape[0] > 128 and x.shape[0] % 4 else found


def ignores_strides(x: Tensor, weight: Tensor) -> Tensor:
    flat = torch.as_strided(x, x.shape, torch.empty(x.shape, device="meta").stride(), x.storage_offset())
    return F.rms_norm(flat, (x.shape[-1],), weight, EPS)


class _Saved(torch.autograd.Function):
    """Its gradient takes the root for a constant."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        root = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS)
        ctx.save_for_backward(x, weight, root)
        return x * root * weight

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        x, weight, root = ctx.saved_tensors
        return g * weight * root, (g * x * root).sum(tuple(range(x.dim() - 1)))


def root_is_constant(x: Tensor, weight: Tensor) -> Tensor:
    return _Saved.apply(x, weight)  # type: ignore[no-any-return, no-untyped-call]


def detached_weight(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight.detach(), EPS)


WRONG = (
    "eps_outside_the_root",
    "other_eps",
    "mean_over_the_batch",
    "no_weight",
    "sum_in_place_of_mean",
    "centred",
    "statistics_in_bfloat16",
    "unbiased",
    "last_row_of_many",
    "ignores_strides",
    "root_is_constant",
    "detached_weight",
)
