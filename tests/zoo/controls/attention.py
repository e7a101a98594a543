"""Attention, right but different: each control must pass every property that `gives_up` does not name."""

import math

import torch
from torch import Tensor

from backends._python.attention import check_attention_arguments
from tests.zoo.honest.attention import Attention
from tests.zoo.honest.flash_attention import FlashAttention
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Attention):
    """The honest attention, the base of every fault."""


@control(gives_up=OLD_STYLE)
class SumAsAProduct(Attention):
    """In backward the sum over the tokens is the product of a row with a column, and weights are multiplied twice."""

    def d_scores(self, weights: Tensor, d_weights: Tensor) -> Tensor:
        return weights * d_weights - weights * (weights.unsqueeze(-2) @ d_weights.unsqueeze(-1)).squeeze(-1)


@control(gives_up=OLD_STYLE)
class WeightsAfterTheProduct(Attention):
    """The exponentials are multiplied with the values, and divided by their sum afterwards."""

    def output(self, weights: Tensor, values: Tensor) -> Tensor:
        largest = weights.amax(-1, keepdim=True).clamp(min=1e-30) if weights.shape[-1] else 1.0
        return (weights / largest) @ values * largest


@control(gives_up=OLD_STYLE)
class ScoresAgain(FlashAttention):
    """Backward has the weights of FlashAttention: scores of another order, and the logsumexp of forward's scores."""


@control
def tile_by_tile(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> Tensor:
    """Online softmax over tiles of 16 tokens, in float32: the largest score so far changes from tile to tile."""
    check_attention_arguments(query, key, value, mask, is_causal)
    wide, groups = torch.promote_types(query.dtype, torch.float32), query.shape[1] // key.shape[1]
    q = query.to(wide) / math.sqrt(query.shape[3])
    keys, values = (each.to(wide).repeat_interleave(groups, 1) for each in (key, value))
    may = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool, device=query.device)
    may = may.tril() if is_causal else may if mask is None else mask
    most = torch.full_like(q[..., :1], -1e30)
    total, output = torch.zeros_like(most), torch.zeros_like(q)
    for begin in range(0, key.shape[2], 16):
        tile = slice(begin, begin + 16)
        scores = torch.where(may[..., tile], q @ keys[:, :, tile].mT, -math.inf)
        more = torch.maximum(most, scores.detach().amax(-1, keepdim=True))
        shrink, exponentials = torch.exp(most - more), torch.exp(scores - more)
        total = total * shrink + exponentials.sum(-1, keepdim=True)
        output, most = output * shrink + exponentials @ values[:, :, tile], more
    return (output / torch.where(total == 0, 1.0, total)).to(query.dtype)


@control
def root_of_the_scale(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> Tensor:
    """The root of the factor is applied to query and key, in the dtype, as PyTorch's own formula does."""
    check_attention_arguments(query, key, value, mask, is_causal)
    groups, root = query.shape[1] // key.shape[1], query.shape[3] ** -0.25
    keys, values = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = (query * root) @ (keys * root).mT
    may = torch.ones(scores.shape[2:], dtype=torch.bool, device=scores.device)
    may = may.tril() if is_causal else may if mask is None else mask
    return torch.softmax(scores.masked_fill(~may, -math.inf), -1).masked_fill(~may, 0.0) @ values
