"""Changes of coordinates."""

from __future__ import annotations

import torch
from torch import Tensor


def polar(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The radius sqrt(x^2 + y^2) and the angle atan2(y, x)."""
    if not bool((x.isfinite() & y.isfinite()).all()):
        raise ValueError(
            "x and y had an infinity or NaN, but should be finite: the radius of kornia 0.9.0 is NaN there"
        )
    square = x.square() + y.square()
    origin = square == 0
    radius = torch.where(origin, torch.ones_like(square), square).sqrt()
    return torch.where(origin, torch.zeros_like(square), radius), torch.atan2(y, x)


def from_homogeneous(points: Tensor, w: Tensor) -> Tensor:
    """The components of each point divided by its w if |w| > 1e-8, otherwise as they are, as OpenCV does."""
    return points / torch.where(w.abs() > 1e-8, w, torch.ones_like(w))[:, None]


def plane() -> tuple[Tensor, Tensor]:
    """The arguments of one call of `polar`."""
    return torch.randn(4, 6), torch.randn(4, 6)


def homogeneous() -> tuple[Tensor, Tensor]:
    """The arguments of one call of `from_homogeneous`."""
    return torch.randn(5, 3), torch.randn(5)
