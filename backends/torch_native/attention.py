"""Attention as F.scaled_dot_product_attention, which chooses among kernels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.attention import check_attention_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.attention import OPERATOR


@by_rule(OPERATOR)
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
    """The output, of the shape of query; 0 for a query that may look at no token."""
    check_attention_arguments(query, key, value, mask, is_causal)
    # With dynamic sizes torch.compile makes a comparison symbolic, but enable_gqa must be a flag (torch 2.13).
    grouped = True if query.shape[1] != key.shape[1] else False  # noqa: SIM210
    return F.scaled_dot_product_attention(query, key, value, mask, is_causal=is_causal, enable_gqa=grouped)


IMPLEMENTATION = PythonFunction(attention)
