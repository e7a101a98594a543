"""The keys of rotary-embedding-torch with xPos."""

from __future__ import annotations

import torch
from rotary_embedding_torch import RotaryEmbedding
from torch import Tensor


def xpos_keys(k: Tensor) -> Tensor:
    """The queries, which are scaled the other way, are left out."""
    module = RotaryEmbedding(k.shape[-1], use_xpos=True)
    return module.rotate_queries_and_keys(torch.zeros_like(k), k)[1]
