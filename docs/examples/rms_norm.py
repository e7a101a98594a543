"""RMSNorm twice: a slow function that is trusted, and a fast one that is not yet."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def slow(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """The reference: the formula, line by line."""
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def example() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(64, 256), torch.randn(256)


def fast(x: Tensor, weight: Tensor) -> Tensor:
    """The function to judge: here PyTorch's own, in your case a kernel."""
    return F.rms_norm(x, (x.shape[-1],), weight, eps=1e-6)
