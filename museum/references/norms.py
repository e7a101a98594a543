"""Normalisations that have no contract."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def group_norm(images: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Two channels at a time have mean 0 and variance 1; then each channel is scaled and shifted."""
    if images.shape[1] % 2 or not images.shape[1]:
        raise ValueError(f"images had {images.shape[1]} channels, but should have an even number of them")
    grouped = images.reshape(images.shape[0], images.shape[1] // 2, 2 * math.prod(images.shape[2:]))
    centred = grouped - grouped.mean(-1, keepdim=True)
    found = (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5)).reshape(images.shape)
    return found * weight[:, None, None] + bias[:, None, None]


def images() -> tuple[Tensor, Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(2, 4, 3, 5), torch.randn(4), torch.randn(4)
