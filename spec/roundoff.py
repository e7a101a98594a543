"""How precise a dtype is: its unit roundoff, and what a result may lose near 0."""

from __future__ import annotations

import torch

#: Unit roundoff: half the distance from 1 to the next number.
UNIT_ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}


def underflow(dtype: torch.dtype) -> float:
    """What a result may lose below the smallest normal number of `dtype`.

    That number itself, because vector and matrix units flush smaller ones to zero. For float16, whose subnormals they
    keep and networks use: the distance of two subnormals.
    """
    facts, flushed = torch.finfo(dtype), torch.finfo(torch.float32).tiny
    return max(facts.tiny * facts.eps, min(facts.tiny, flushed))
