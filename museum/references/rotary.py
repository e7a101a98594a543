"""Rotary embedding whose keys are scaled (xPos: Sun et al., 2022)."""

from __future__ import annotations

import torch
from torch import Tensor

BASE, DISTANCE = 10000.0, 512.0


def xpos_keys(k: Tensor) -> Tensor:
    """Each pair (2i, 2i+1) at position n of a sequence is turned by n 10000^(-2i/d) and divided by s_i^m.

    s_i is (2i/d + 0.4) / 1.4, and m is the distance from the middle of the sequence, divided by 512. Two features are
    refused: newer releases of the package do not take them.
    """
    if k.shape[-1] % 2 or k.shape[-1] < 4:
        raise ValueError(f"k had {k.shape[-1]} features, but should have an even number from 4 on")
    return _keys(k)


def xpos_pairs(k: Tensor) -> Tensor:
    """The same for one pair of features."""
    if k.shape[-1] != 2:
        raise ValueError(f"k had {k.shape[-1]} features, but should have 2")
    return _keys(k)


def _keys(k: Tensor) -> Tensor:
    length, features = k.shape[-2:]
    place = torch.arange(length, dtype=k.dtype, device=k.device)[:, None]
    pair = torch.arange(0, features, 2, dtype=k.dtype, device=k.device) / features
    angle = place * BASE**-pair
    scale = ((pair + 0.4) / 1.4) ** (-(place - length // 2) / DISTANCE)
    first, second = k[..., 0::2], k[..., 1::2]
    turned = first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()
    return (torch.stack(turned, -1) * scale[..., None]).reshape(k.shape)


def keys() -> tuple[Tensor]:
    """The arguments of one call."""
    return (torch.randn(2, 5, 8),)


def pairs() -> tuple[Tensor]:
    """The arguments of one call."""
    return (torch.randn(2, 5, 2),)
