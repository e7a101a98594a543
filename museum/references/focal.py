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


def focal_of_truth(logits: Tensor, labels: Tensor) -> Tensor:
    """(1-p)^2 (x - x y - log sigmoid x) of a logit x and a label y, with p the probability of the label.

    Where x is far below 0 and y is 0, the terms cancel: the report is not about these digits, which the form without
    cancellation would ask for.
    """
    truth = labels.to(logits.dtype)
    return torch.sigmoid((1 - 2 * truth) * logits).square() * (logits - logits * truth - F.logsigmoid(logits))


def focal_with_weight(logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """`focal` of (images, classes, pixels). The terms of positive labels are multiplied by a weight of their class."""
    if weight.shape != logits.shape[1:2]:
        raise ValueError(f"weight had shape {tuple(weight.shape)}, but should have {tuple(logits.shape[1:2])}")
    positive = -ALPHA * torch.sigmoid(-logits).square() * labels * F.logsigmoid(logits)
    negative = -(1 - ALPHA) * torch.sigmoid(logits).square() * (1 - labels) * F.logsigmoid(-logits)
    return positive * weight[:, None] + negative


def soft_labels() -> tuple[Tensor, Tensor]:
    """The arguments of one call: labels between 0 and 1."""
    return torch.randn(4, 6), torch.rand(4, 6)


def example() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(4, 6), torch.rand(4, 6) < 0.5


def voxels() -> tuple[Tensor, Tensor]:
    """The arguments of one call: images, classes and voxels."""
    return torch.randn(2, 3, 5), torch.rand(2, 3, 5) < 0.5


def weighted() -> tuple[Tensor, Tensor, Tensor]:
    """The arguments of one call: weights are positive."""
    return torch.randn(2, 3, 5), torch.rand(2, 3, 5), torch.rand(3) + 0.5
