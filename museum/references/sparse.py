"""Sparsemax: the Euclidean projection of each row onto the probability simplex (Martins and Astudillo, 2016)."""

from __future__ import annotations

import torch
from torch import Tensor


def sparsemax(x: Tensor) -> Tensor:
    """max(x - tau, 0) over the last dimension, with the tau for which a row sums to 1 (algorithm 1 of the paper)."""
    if not bool((x.abs() < 1e4).all()):
        raise ValueError(
            "x had elements that are not finite or above 10,000, where float32 does not tell x from x - tau"
        )
    ordered = x.sort(dim=-1, descending=True).values
    sums = ordered.cumsum(-1)
    ranks = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
    size = (1 + ranks * ordered > sums).sum(-1, keepdim=True)
    tau = (sums.gather(-1, size - 1) - 1) / size
    return (x - tau).clamp(min=0)


def three_dimensions() -> tuple[Tensor]:
    """The arguments of one call: rows in two dimensions."""
    return (torch.randn(3, 4, 6),)


def rows() -> tuple[Tensor]:
    """The arguments of one call: a batch of rows."""
    return (torch.randn(8, 6),)
