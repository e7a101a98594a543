"""Attention over a packed batch: argument checks, and which tokens may see each other."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import check_kind

_KEYS = "(tokens, heads, width)"
_OFFSETS = "(sequences + 1,)"


def check_attention_varlen_arguments(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor) -> None:
    """Raise TypeError or ValueError unless all shapes fit. The values of the offsets are not looked at."""
    rules = {"query": (query, "(tokens, groups*heads, width)"), "key": (key, _KEYS), "value": (value, _KEYS)}
    for name, (tensor, rule) in rules.items():
        check_kind(f"attention_varlen: {name}", tensor, rule, "query", query)
        if tensor.dim() != 3:
            raise ValueError(
                f"attention_varlen: {name} was of rank {tensor.dim()} with shape {tuple(tensor.shape)}, but should be "
                f"of rank 3: {rule}"
            )
    (tokens, query_heads, width), heads = query.shape, key.shape[1]
    if not query_heads or not heads or query_heads % heads:
        raise ValueError(
            f"attention_varlen: key was {tuple(key.shape)} with {heads} heads, but should have a divisor of "
            f"{query_heads}, the heads of query, whose shape is {tuple(query.shape)}"
        )
    expected = (tokens, heads, width)
    for name, tensor in (("key", key), ("value", value)):
        if tuple(tensor.shape) != expected:
            raise ValueError(
                f"attention_varlen: {name} was {tuple(tensor.shape)}, but should be {_KEYS} = {expected}, where query "
                f"is {tuple(query.shape)} and key is {tuple(key.shape)}"
            )
    check_kind("attention_varlen: cu_seqlens", cu_seqlens, _OFFSETS, "query", query, torch.int32)
    if cu_seqlens.dim() != 1 or not cu_seqlens.shape[0]:
        raise ValueError(
            f"attention_varlen: cu_seqlens was of rank {cu_seqlens.dim()} with shape {tuple(cu_seqlens.shape)}, but "
            f"should be of rank 1: {_OFFSETS}, the offset of each sequence and the number of tokens"
        )


def may_see(cu_seqlens: Tensor, tokens: int, is_causal: bool) -> Tensor:
    """(tokens, tokens): whether the token of a row may see that of a column. It does not wait for the device."""
    place = torch.arange(tokens, device=cu_seqlens.device)
    sequence = (place.unsqueeze(-1) >= cu_seqlens[1:]).sum(-1)
    mask = sequence.unsqueeze(-1) == sequence
    return mask.tril() if is_causal else mask
