"""Linear attention."""

from __future__ import annotations

import torch
from torch import Tensor


def normalised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """sum_(s <= t) (q_t k_s) v_s / (sum_(s <= t) q_t k_s + 1e-10), with q divided by the root of its features.

    All are (batch, time, heads, features).
    """
    if q.shape != k.shape or q.shape[:3] != v.shape[:3]:
        raise ValueError(f"q, k and v had shapes {tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}")
    weights = torch.einsum("bthk,bshk->bhts", q * q.shape[-1] ** -0.5, k)
    time = torch.arange(q.shape[1], device=q.device)
    weights = torch.where(time[:, None] >= time, weights, torch.zeros_like(weights))
    total = weights.sum(-1).movedim(1, -1)[..., None]
    return torch.einsum("bhts,bshv->bthv", weights, v) / (total + 1e-10)


def positive() -> tuple[Tensor, Tensor, Tensor]:
    """The arguments of one call. Queries and keys are positive, as those of linear attention are."""
    return torch.rand(2, 5, 3, 4) + 0.1, torch.rand(2, 5, 3, 4) + 0.1, torch.randn(2, 5, 3, 6)
