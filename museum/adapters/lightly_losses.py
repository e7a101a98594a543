"""lightly's losses of self-supervised learning."""

from __future__ import annotations

from torch import Tensor

from museum.parts import part

losses = part("lightly.loss.barlow_twins_loss")


def barlow_twins(z_a: Tensor, z_b: Tensor) -> Tensor:
    """With the default weight of the redundancy, 0.005."""
    return losses.BarlowTwinsLoss()(z_a, z_b)
