"""Scaled dot-product attention: torch operations under torch.compile. Softmax of half types in float32."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from backends._python.attention import check_attention_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.attention import OPERATOR


def _forward(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.mT * (1 / math.sqrt(query.shape[3]))
    if is_causal:
        mask = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, -1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)  # the softmax of nothing is NaN
    return weights @ value


@by_rule(OPERATOR)
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
    """The output, of the shape of query; 0 for a query that may look at no token."""
    check_attention_arguments(query, key, value, mask, is_causal)
    output: Tensor = compiled(_forward)(query, key, value, mask, is_causal)
    return output


IMPLEMENTATION = PythonFunction(attention)
