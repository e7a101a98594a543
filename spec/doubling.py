"""A linear recurrence by doubling, as Hillis and Steele have it, and the gradient of its gates pass by pass.

Source: W. D. Hillis, G. L. Steele, "Data parallel algorithms" (1986).
"""

from __future__ import annotations

import torch
from torch import Tensor


def _passes(a: Tensor, x: Tensor) -> list[tuple[int, Tensor, Tensor]]:
    """2^k, the products of the last 2^k gates and the states of the last 2^k tokens, for each k until these are all."""
    reach, passes = 1, [(1, a, x)]
    while reach < x.shape[-1]:
        x = torch.cat((x[..., :reach], a[..., reach:] * x[..., :-reach] + x[..., reach:]), -1)
        a = torch.cat((a[..., :reach], a[..., reach:] * a[..., :-reach]), -1)
        reach *= 2
        passes.append((reach, a, x))
    return passes


def by_doubling(a: Tensor, x: Tensor) -> Tensor:
    """The states from 0: after k passes each one has the last 2^k terms."""
    return _passes(a, x)[-1][2]


def gradient_of_gates(a: Tensor, x: Tensor, g: Tensor) -> Tensor:
    """The gradient of `a` where each pass is differentiated: a sum of products of parts of l with parts of h."""
    d_a, d_x = torch.zeros_like(a), g
    for reach, of_a, of_x in reversed(_passes(a, x)[:-1]):
        own = d_x[..., reach:] * of_x[..., :-reach] + d_a[..., reach:] * of_a[..., :-reach]
        none = torch.zeros_like(g[..., :reach])
        earlier, before = (torch.cat((d[..., reach:] * of_a[..., reach:], none), -1) for d in (d_a, d_x))
        d_a, d_x = torch.cat((d_a[..., :reach], own), -1) + earlier, d_x + before
    return d_a
