"""Right implementations of seven operators, step by step: the sources of mutants. Each reference is in `mutated.py`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    return x * scale * weight


def softmax(x: Tensor) -> Tensor:
    powers = torch.exp(x - x.logsumexp(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def swiglu(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
    z = x @ gate
    return z * torch.sigmoid(z) * (x @ up)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    shifted = logits - logits.logsumexp(-1, keepdim=True)
    return -shifted.gather(-1, labels[:, None])[:, 0]


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], -1)
    return x * cos + turned * sin


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    deviation = torch.sqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
    return centred / deviation * weight + bias


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    seen = torch.where(mask, scores, -1e4)
    return torch.softmax(seen, -1) @ v


class _NormWithBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
        unit, along = x * scale, g * weight
        d_x = scale * (along - unit * (along * unit).mean(-1, keepdim=True))
        return d_x, (g * unit).flatten(0, -2).sum(0)


def rms_norm_with_backward(x: Tensor, weight: Tensor) -> Tensor:
    return _NormWithBackward.apply(x, weight)  # type: ignore[no-any-return, no-untyped-call]
