"""Distances between a predicted distribution and a label, summed over a row and averaged over the rows."""

from __future__ import annotations

import torch
from torch import Tensor


def target(labels: Tensor, like: Tensor, sure: float) -> Tensor:
    """The distribution that a label stands for: `sure` for its class, the rest for all classes alike."""
    classes = torch.arange(like.shape[-1], device=like.device)
    return sure * (labels[:, None] == classes).to(like.dtype) + (1 - sure) / like.shape[-1]


def kl_div(log_q: Tensor, labels: Tensor) -> Tensor:
    """sum p (log p - log q), where p is 1 for the label: minus the log-probability of the label."""
    return -log_q.gather(1, labels[:, None]).mean()


def smoothed_kl_div(log_q: Tensor, labels: Tensor) -> Tensor:
    """sum p (log p - log q), where p is 3/4 for the label and the rest is shared alike."""
    p = target(labels, log_q, 0.75)
    return (p * (p.log() - log_q)).sum(-1).mean()


def total_variation(q: Tensor, labels: Tensor) -> Tensor:
    """sum |p - q| / 2, where p is 1 for the label."""
    return ((q - target(labels, q, 1.0)).abs() / 2).sum(-1).mean()


def logarithms() -> tuple[Tensor, Tensor]:
    """The arguments of one call: log-probabilities and labels."""
    return torch.randn(4, 8).log_softmax(-1), torch.randint(8, (4,))


def probabilities() -> tuple[Tensor, Tensor]:
    """The arguments of one call: probabilities and labels."""
    return torch.randn(4, 8).softmax(-1), torch.randint(8, (4,))
