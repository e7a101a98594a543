"""Argument checks of attention: the heads of the queries are a multiple of those of the keys."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import check_kind

_KEYS = "(batch, heads, tokens, width)"


def check_attention_arguments(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool = False
) -> None:
    """Raise TypeError or ValueError unless all shapes fit. A mask and is_causal exclude each other, as in PyTorch."""
    rules = {"query": (query, "(batch, groups*heads, queries, width)"), "key": (key, _KEYS), "value": (value, _KEYS)}
    for name, (tensor, rule) in rules.items():
        check_kind(f"attention: {name}", tensor, rule, "query", query)
        if tensor.dim() != 4:
            raise ValueError(
                f"attention: {name} was of rank {tensor.dim()} with shape {tuple(tensor.shape)}, but should be of rank "
                f"4: {rule}"
            )
    batch, query_heads, queries, width = query.shape
    heads, tokens = key.shape[1:3]
    if not query_heads:
        raise ValueError(
            f"attention: query was {tuple(query.shape)}, but should be {rules['query'][1]} with at least "
            f"one head, where key is {tuple(key.shape)}"
        )
    if not heads or query_heads % heads:
        raise ValueError(
            f"attention: key was {tuple(key.shape)} with {heads} heads, but should have a divisor of {query_heads}, "
            f"the heads of query, whose shape is {tuple(query.shape)}"
        )
    expected = (batch, heads, tokens, width)
    for name, tensor in (("key", key), ("value", value)):
        if tuple(tensor.shape) != expected:
            raise ValueError(
                f"attention: {name} was {tuple(tensor.shape)}, but should be {_KEYS} = {expected}, where query is "
                f"{tuple(query.shape)} and key is {tuple(key.shape)}"
            )
    if mask is not None:
        check_kind("attention: mask", mask, "(batch, 1, queries, tokens)", "query", query, torch.bool)
        if tuple(mask.shape) != (batch, 1, queries, tokens):
            rank = "" if mask.dim() == 4 else f"of rank {mask.dim()} with shape "
            raise ValueError(
                f"attention: mask was {rank}{tuple(mask.shape)}, but should be (batch, 1, queries, tokens) = "
                f"{(batch, 1, queries, tokens)}, of rank 4, where query is {tuple(query.shape)}"
            )
        if is_causal:
            raise ValueError("attention: is_causal was True with a mask, but should be False: put both into the mask")
