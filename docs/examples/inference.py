"""A kernel for inference: it has no backward, and is judged with --forward-only."""

import torch
from torch import Tensor


@torch.no_grad()
def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm over the last dimension, with the sum in float32 or better."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return (wide * scale).to(x.dtype) * weight
