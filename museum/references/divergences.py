"""Distances between distributions, whose rows are summed and then averaged."""

from __future__ import annotations

import torch
from torch import Tensor


def kl_div(log_q: Tensor, p: Tensor) -> Tensor:
    """sum p (log p - log q) over a row, and the mean over the rows. The targets p are constant."""
    p = p.detach()
    return (p * (p.log() - log_q)).sum(-1).mean()


def total_variation(p: Tensor, q: Tensor) -> Tensor:
    """sum |p - q| / 2 over a row, and the mean over the rows. The targets q are constant."""
    return ((p - q.detach()).abs() / 2).sum(-1).mean()


def with_logarithms() -> tuple[Tensor, Tensor]:
    """The arguments of one call: log-probabilities, and probabilities."""
    return torch.randn(4, 8).log_softmax(-1), torch.randn(4, 8).softmax(-1)


def probabilities() -> tuple[Tensor, Tensor]:
    """The arguments of one call: two distributions a row."""
    return torch.randn(4, 8).softmax(-1), torch.randn(4, 8).softmax(-1)
