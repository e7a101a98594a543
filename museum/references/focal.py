"""The focal loss of a binary label (Lin et al., 2017), element by element."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

ALPHA = 0.25


def focal(logits: Tensor, labels: Tensor) -> Tensor:
    """-alpha (1-p)^2 y log p - (1-alpha) p^2 (1-y) log(1-p), with p the sigmoid of the logit and y a label."""
    positive = -ALPHA * torch.sigmoid(-logits).square() * labels * F.logsigmoid(logits)
    negative = -(1 - ALPHA) * torch.sigmoid(logits).square() * (1 - labels) * F.logsigmoid(-logits)
    return positive + negative


def focal_with_eps(logits: Tensor, labels: Tensor, eps: float = 1e-8) -> Tensor:
    """The same for a true or false label with the exponent 1/2, and eps where the slope would be infinite."""
    p = torch.sigmoid(logits)
    positive = -ALPHA * (1 - p + eps).sqrt() * (p + eps).log()
    negative = -(1 - ALPHA) * (p + eps).sqrt() * (1 - p + eps).log()
    return torch.where(labels, positive, negative)


def soft_labels() -> tuple[Tensor, Tensor]:
    """The arguments of one call: labels between 0 and 1."""
    return torch.randn(4, 6), torch.rand(4, 6)


def example() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(4, 6), torch.rand(4, 6) < 0.5
