"""Linear attention of flash-linear-attention, as it is written without kernels."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import pad

from museum.parts import part

naive = part("fla.ops.linear_attn.naive")


def normalised(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """In chunks of 64 steps, with the default scale. Steps that are missing in the last chunk are added after it."""
    time = q.shape[1]
    padded = (pad(x, (0, 0, 0, 0, 0, -time % 64)) for x in (q, k, v))
    return naive.naive_chunk_linear_attn(*padded, normalize=True)[:, :time]
