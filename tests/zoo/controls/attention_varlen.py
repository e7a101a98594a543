"""Attention over a packed batch, right but different: each control must pass all that it does not give up."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor

from backends._python.attention_varlen import check_attention_varlen_arguments, may_see
from tests.zoo.honest.attention_varlen import Varlen
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Varlen):
    """The honest attention, the base of every fault."""


@control(
    gives_up={
        "fake-tensors": "it reads the offsets on the host, and fake ones have no values",
        "functional-transforms": "it reads the offsets on the host, and those under vmap have no single value",
    }
)
def sequence_by_sequence(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False
) -> Tensor:
    """A loop over the sequences, whose offsets are read on the host; softmax of each in float32."""
    check_attention_varlen_arguments(query, key, value, cu_seqlens)
    wide, groups = torch.promote_types(query.dtype, torch.float32), query.shape[1] // key.shape[1]
    q, k, v = (each.to(wide).transpose(0, 1) for each in (query, key, value))
    k, v = k.repeat_interleave(groups, 0), v.repeat_interleave(groups, 0)
    offsets, parts = cu_seqlens.tolist(), [q[:, :0] @ k[:, :0].mT @ v[:, :0]]
    for begin, end in pairwise(offsets):
        part = slice(begin, end)
        scores = q[:, part] @ k[:, part].mT / math.sqrt(query.shape[2])
        if is_causal:
            ahead = torch.ones(end - begin, end - begin, dtype=torch.bool, device=query.device).triu(1)
            scores = scores.masked_fill(ahead, -math.inf)
        parts.append(torch.softmax(scores, -1) @ v[:, part])
    return torch.cat(parts, 1).transpose(0, 1).to(query.dtype)


_TILES = "it has a pass for every 16 tokens, so each number of tiles is another graph"


@control(gives_up={"compile": _TILES})
def tile_by_tile(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False) -> Tensor:
    """Online softmax over tiles of 16 tokens of the whole batch, in float32: a tile may hold several sequences."""
    check_attention_varlen_arguments(query, key, value, cu_seqlens)
    wide, groups = torch.promote_types(query.dtype, torch.float32), query.shape[1] // key.shape[1]
    q = query.to(wide).transpose(0, 1) / math.sqrt(query.shape[2])
    keys, values = (each.to(wide).repeat_interleave(groups, 1).transpose(0, 1) for each in (key, value))
    may = may_see(cu_seqlens, query.shape[0], is_causal)
    most = torch.full_like(q[..., :1], -1e30)
    total, output = torch.zeros_like(most), torch.zeros_like(q)
    for begin in range(0, query.shape[0], 16):
        tile = slice(begin, begin + 16)
        scores = torch.where(may[:, tile], q @ keys[:, tile].mT, -math.inf)
        more = torch.maximum(most, scores.detach().amax(-1, keepdim=True))
        shrink, exponentials = torch.exp(most - more), torch.exp(scores - more)
        total = total * shrink + exponentials.sum(-1, keepdim=True)
        output, most = output * shrink + exponentials @ values[:, tile], more
    output = output / torch.where(total == 0, 1.0, total)
    of_none = q[:, :0] @ keys[:, :0].mT @ values[:, :0]  # of no tokens too, the output depends on all three
    return torch.cat((output, of_none), 1).transpose(0, 1).to(query.dtype)
