"""Rotations in three dimensions."""

from __future__ import annotations

import torch
from torch import Tensor


def axis_angle_to_quaternion(axis_angle: Tensor) -> Tensor:
    """(cos(t/2), v sin(t/2)/t) of a vector v whose length t is the angle. At v = 0, sin(t/2)/t is 1/2."""
    if axis_angle.shape[-1] != 3:
        raise ValueError(f"axis_angle had {axis_angle.shape[-1]} components, but should have 3")
    square = axis_angle.square().sum(-1, keepdim=True)
    turns = square > 0
    angle = torch.where(turns, square, torch.ones_like(square)).sqrt()
    cosine = torch.where(turns, (angle / 2).cos(), torch.ones_like(square))
    factor = torch.where(turns, (angle / 2).sin() / angle, torch.full_like(square, 0.5))
    return torch.cat([cosine, axis_angle * factor], -1)


def vectors() -> tuple[Tensor]:
    """The arguments of one call."""
    return (torch.randn(4, 3),)
