"""The Lovasz-Softmax loss (Berman et al., 2018)."""

from __future__ import annotations

import torch
from torch import Tensor


def lovasz_softmax(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean over the classes that occur of the Lovasz extension of the Jaccard loss, over all pixels of all images.

    scores is (images, classes, pixels), labels (images, pixels). The errors of a class are sorted downwards, and each
    is weighted by what it adds to the Jaccard loss of those before it.
    """
    classes = scores.shape[1]
    if labels.shape != (scores.shape[0], scores.shape[2]) or not labels.numel() or classes < 2:
        raise ValueError(f"scores and labels had shapes {tuple(scores.shape)} and {tuple(labels.shape)}")
    likely, truth = scores.softmax(1).movedim(1, -1).reshape(-1, classes), labels.reshape(-1)
    losses = []
    for label in torch.unique(truth).tolist():
        there = (truth == label).to(scores.dtype)
        errors, order = (there - likely[:, label]).abs().sort(descending=True)
        found = there[order]
        jaccard = 1 - (found.sum() - found.cumsum(0)) / (found.sum() + (1 - found).cumsum(0))
        losses.append((errors * jaccard.diff(prepend=jaccard.new_zeros(1))).sum())
    return torch.stack(losses).mean()


def images() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(2, 3, 7), torch.randint(3, (2, 7))
