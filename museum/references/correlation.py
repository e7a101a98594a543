"""Losses of two batches of embeddings."""

from __future__ import annotations

import torch
from torch import Tensor


def barlow_twins(z_a: Tensor, z_b: Tensor) -> Tensor:
    """sum_i (C_ii - 1)^2 + 0.005 sum_i sum_(j != i) C_ij^2 (Zbontar et al., 2021).

    C is the correlation of the features of both batches, where 1e-5 is added to each variance.
    """
    if z_a.shape != z_b.shape or z_a.shape[0] < 2:
        raise ValueError(
            f"z_a and z_b had shapes {z_a.shape} and {z_b.shape}, but should share one of two or more rows"
        )
    a, b = (z - z.mean(0) for z in (z_a, z_b))
    a, b = (z * torch.rsqrt(z.square().mean(0) + 1e-5) for z in (a, b))
    correlation = a.T @ b / z_a.shape[0]
    feature = torch.arange(z_a.shape[1], device=z_a.device)
    same = (feature[:, None] == feature).to(z_a.dtype)
    return ((correlation - same).square() * (same + 0.005 * (1 - same))).sum()


def embeddings() -> tuple[Tensor, Tensor]:
    """The arguments of one call."""
    return torch.randn(6, 4), torch.randn(6, 4)
