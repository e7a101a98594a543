"""RMSNorm twice: a function that is trusted, and one that shall take its place and has a mistake."""

from __future__ import annotations

import torch
from torch import Tensor


def slow(x: Tensor, weight: Tensor, eps: float = 1e-3) -> Tensor:
    """The reference: the formula, as you trust it."""
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def fast(x: Tensor, weight: Tensor) -> Tensor:
    """The function to judge. It adds eps after the root, which ordinary values hardly show."""
    return x / (x.norm(dim=-1, keepdim=True) / x.shape[-1] ** 0.5 + 1e-3) * weight


def example() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(64, 256), torch.randn(256)
