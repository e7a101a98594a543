"""Distances between a predicted distribution and a label, summed over a row and averaged over the rows."""

from __future__ import annotations

import torch
from torch import Tensor


def target(labels: Tensor, like: Tensor, sure: float) -> Tensor:
    """The distribution that a label stands for: `sure` for its class, the rest for all classes alike."""
    paired(labels, like)
    classes = torch.arange(like.shape[-1], device=like.device)
    return sure * (labels[:, None] == classes).to(like.dtype) + (1 - sure) / like.shape[-1]


def paired(labels: Tensor, like: Tensor) -> None:
    """Refuses labels that are not one for each row: gather takes fewer of them, a kernel reads beyond their end."""
    if labels.shape != like.shape[:1]:
        raise ValueError(f"labels had shape {tuple(labels.shape)}, but should have {tuple(like.shape[:1])}")


def kl_div(log_q: Tensor, labels: Tensor) -> Tensor:
    """sum p (log p - log q), where p is 1 for the label: minus the log-probability of the label."""
    paired(labels, log_q)
    return -log_q.gather(1, labels[:, None]).mean()


def kl_div_of_weights(weights: Tensor, labels: Tensor) -> Tensor:
    """The same of a q that is proportional to weights."""
    paired(labels, weights)
    return -(weights / weights.sum(-1, keepdim=True)).gather(1, labels[:, None]).log().mean()


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
