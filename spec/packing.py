"""A packed batch: sequences one after another, and the offsets at which they begin and end."""

from __future__ import annotations

import torch
from torch import Tensor

from spec.contract import TensorArg


def sequence_of(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """(tokens,): the number of the sequence that each token belongs to."""
    place = torch.arange(tokens, device=cu_seqlens.device)
    return (place.unsqueeze(-1) >= cu_seqlens[1:]).sum(-1)


def of_one_sequence(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """(1, 1, tokens, tokens): whether two tokens are of one sequence."""
    sequence = sequence_of(cu_seqlens, tokens)
    return (sequence.unsqueeze(-1) == sequence).unsqueeze(0).unsqueeze(0)


def in_batch(packed: Tensor) -> Tensor:
    """(tokens, heads, width) as (1, heads, tokens, width)."""
    return packed.transpose(0, 1).unsqueeze(0)


def in_pack(batch: Tensor) -> Tensor:
    """(1, heads, tokens, width) as (tokens, heads, width)."""
    return batch.squeeze(0).transpose(0, 1)


def offsets(name: str, sequences: str, tokens: str) -> TensorArg:
    """The offsets as an input: int32, from 0 to the number of tokens."""
    shape = (f"{sequences} + 1",)
    return TensorArg(name, shape, differentiable=False, dtype=torch.int32, high=tokens, offsets=True)
