"""Attention over a packed batch as F.scaled_dot_product_attention of all tokens, with a mask of their sequences.

torch.nn.attention.varlen.varlen_attn, which skips pairs of different sequences, calls FlashAttention: it has no CPU, no
float32 and no float64, and its arguments differ between releases.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.attention_varlen import check_attention_varlen_arguments, may_see
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.attention_varlen import OPERATOR


@by_rule(OPERATOR)
def attention_varlen(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False) -> Tensor:
    """The output, of the shape of query."""
    check_attention_varlen_arguments(query, key, value, cu_seqlens)
    # With dynamic sizes torch.compile makes a comparison symbolic, but enable_gqa must be a flag (torch 2.13).
    grouped = True if query.shape[1] != key.shape[1] else False  # noqa: SIM210
    mask = may_see(cu_seqlens, query.shape[0], is_causal)
    q, k, v = (tensor.transpose(0, 1).unsqueeze(0) for tensor in (query, key, value))
    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=grouped).squeeze(0).transpose(0, 1)


IMPLEMENTATION = PythonFunction(attention_varlen)
