"""kornia's conversions between representations of points and rotations."""

from __future__ import annotations

import torch
from torch import Tensor

from museum.parts import part

conversions = part("kornia.geometry.conversions")


def axis_angle_to_quaternion(axis_angle: Tensor) -> Tensor:
    """The quaternion begins with its real part."""
    return conversions.axis_angle_to_quaternion(axis_angle)


def polar(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """With the default eps, 1e-8."""
    return conversions.cart2pol(x, y)


def from_homogeneous(points: Tensor, w: Tensor) -> Tensor:
    """With the default eps, 1e-8. kornia has w as the last component."""
    return conversions.convert_points_from_homogeneous(torch.cat([points, w[:, None]], -1))
