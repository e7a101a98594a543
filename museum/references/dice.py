"""Dice losses of segmentation."""

from __future__ import annotations

import torch
from torch import Tensor


def wasserstein_dice(scores: Tensor, labels: Tensor) -> Tensor:
    """The generalised Wasserstein Dice loss (Fidon et al., 2017) of scores (images, classes, voxels).

    It is averaged over the images. Every two different classes are 1 apart, and class 0 is the background.
    """
    if scores.shape[1] < 2:
        raise ValueError(f"scores had {scores.shape[1]} classes, but should have two or more")
    classes = torch.arange(scores.shape[1], device=scores.device)
    apart = (classes[:, None] != classes).to(scores.dtype)
    error = (scores.softmax(1) * apart[labels].movedim(-1, 1)).sum(1)
    right = ((labels != 0).to(scores.dtype) * (1 - error)).sum(1)
    return (1 - (2 * right + 1e-5) / (2 * right + error.sum(1) + 1e-5)).mean()


def example() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(3, 4, 6), torch.randint(4, (3, 6))
