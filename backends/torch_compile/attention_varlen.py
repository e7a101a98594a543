"""Attention over a packed batch: torch operations under torch.compile. Softmax of half types in float32."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from backends._python.attention_varlen import check_attention_varlen_arguments, may_see
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.attention_varlen import OPERATOR


def _forward(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    q, k, v = (x.transpose(0, 1) for x in (query, key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)))
    scores = q @ k.mT * (1 / math.sqrt(query.shape[2]))
    weights = torch.softmax(scores.masked_fill(~may_see(cu_seqlens, query.shape[0], is_causal), -math.inf), -1)
    return (weights @ v).transpose(0, 1)


@by_rule(OPERATOR)
def attention_varlen(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False) -> Tensor:
    """The output, of the shape of query."""
    check_attention_varlen_arguments(query, key, value, cu_seqlens)
    output: Tensor = compiled(_forward)(query, key, value, cu_seqlens, is_causal)
    return output


IMPLEMENTATION = PythonFunction(attention_varlen)
