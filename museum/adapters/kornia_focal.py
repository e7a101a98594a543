"""kornia's focal loss of binary labels, without a reduction."""

from __future__ import annotations

from torch import Tensor

from museum.parts import part

losses = part("kornia.losses.focal")


def focal(logits: Tensor, labels: Tensor) -> Tensor:
    """With alpha 0.25 and gamma 2."""
    return losses.binary_focal_loss_with_logits(
        logits, labels.to(logits.dtype), alpha=0.25, gamma=2.0, reduction="none"
    )


def focal_root(logits: Tensor, labels: Tensor) -> Tensor:
    """With alpha 0.25 and gamma 1/2. Releases before 0.6 want the dimension of the one class in the logits alone."""
    made = losses.binary_focal_loss_with_logits(
        logits[:, None], labels.to(logits.dtype), alpha=0.25, gamma=0.5, reduction="none"
    )
    return made.reshape(logits.shape)


def focal_with_weight(logits: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    """With alpha 0.25, gamma 2 and a weight of each class, which is broadcast over the pixels."""
    return losses.binary_focal_loss_with_logits(
        logits, labels, alpha=0.25, gamma=2.0, reduction="none", pos_weight=weight[:, None]
    )
