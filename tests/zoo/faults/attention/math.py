"""Attention with wrong values: scale, masks, heads, and tails of tiles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.zoo.honest.attention import Attention
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class NoScale(Attention):
    """The scores are not divided by the root of the width."""

    def scale(self, query: Tensor) -> float:
        return 1.0


@fault("forward-parity", WRONG)
class ScaledByTheWidth(Attention):
    """The scores are divided by the width, not by its root."""

    def scale(self, query: Tensor) -> float:
        return 1 / query.shape[-1]


@fault("forward-parity", r"values shifted")
class NothingIsSubtracted(Attention):
    """The exponentials overflow, because the largest score is not subtracted."""

    def largest(self, scores: Tensor) -> Tensor:
        return torch.zeros_like(scores[..., :1]) if scores.shape[-1] else super().largest(scores)


@fault("forward-parity", r"causal")
class BottomRight(Attention):
    """is_causal aligns the last query with the last token, as with a cache; PyTorch aligns the first ones."""

    def causal(self, queries: int, tokens: int, device: torch.device) -> Tensor:
        return torch.ones(queries, tokens, dtype=torch.bool, device=device).tril(tokens - queries)


@fault("forward-parity", r"causal")
class NotItself(Attention):
    """With is_causal, a query does not look at the token of its own place."""

    def causal(self, queries: int, tokens: int, device: torch.device) -> Tensor:
        may = super().causal(queries, tokens, device)
        return may.tril(-1) if tokens > 1 else may


@fault("forward-parity", r"mask")
class MaskTheOtherWay(Attention):
    """True in the mask hides a token."""

    def allowed(self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        may = super().allowed(query, key, mask, is_causal)
        return may if mask is None else ~may


@fault("forward-parity", r"mask")
class MaskOfTheFirstCall(Attention):
    """The mask of the first element of the batch is used for all of them."""

    def allowed(self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        may = super().allowed(query, key, mask, is_causal)
        return may if mask is None else may[:1]


@fault("forward-parity", r"nowhere|nan|NaN")
class NowhereIsNaN(Attention):
    """A query that may look nowhere has NaN, the softmax of nothing."""

    def weights(self, scores: Tensor, may: Tensor) -> Tensor:
        return torch.softmax(scores.masked_fill(~may, -math.inf), -1)


@fault("forward-parity", r"grouped")
class HeadsInTurn(Attention):
    """Query head h uses key head h modulo their number: heads that share keys are not neighbours."""

    def for_queries(self, shared: Tensor, heads: int) -> Tensor:
        return shared.repeat(1, heads // shared.shape[1], 1, 1)


@fault("sizes", r"tokens-\d+|usual|vit|whisper|llama")
class ForgetsTheTail(Attention):
    """Tokens behind the last full tile of 16 have no weight, where there is a full one."""

    def allowed(self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        may, tokens = super().allowed(query, key, mask, is_causal), key.shape[2]
        full = tokens // 16 * 16 or tokens
        return may & (torch.arange(tokens, device=query.device) < full)


@fault("sizes", r"width-(72|128|256|33)|llama|vit|whisper")
class AtMost64Wide(Attention):
    """Elements of a head from 64 on are not in the scores: one tile, and no loop over tiles."""

    def scale(self, query: Tensor) -> float:
        return 1 / math.sqrt(min(query.shape[-1], 64))


@fault("forward-parity", r"output was", dtype=torch.float64)
class SingleInside(Attention):
    """float64 goes through float32."""

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.float32).to(torch.promote_types(tensor.dtype, torch.float32))


@fault("sizes", r"(output|gradient of value) was", dtype=torch.bfloat16)
class SumInBfloat16(Attention):
    """The sum of the exponentials is kept in bfloat16 from one tile of 16 tokens to the next."""

    def total(self, exponentials: Tensor) -> Tensor:
        total = torch.zeros_like(exponentials[..., :1])
        for tile in exponentials.split(16, -1):
            total = (total + super().total(tile)).to(torch.bfloat16).to(exponentials.dtype)
        return total
