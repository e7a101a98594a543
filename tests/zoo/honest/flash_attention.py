"""FlashAttention's backward in Python: it has the output and logsumexp of forward, and computes the scores again.

The product of backward has other tiles than that of forward, so its scores are rounded otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from tests.zoo.honest.attention import Attention


class FlashAttention(Attention):
    """Right as it stands. `kept` is what forward keeps of logsumexp."""

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        self.check(query, key, value, mask, is_causal)
        output: Tensor = _Function.apply(self, query, key, value, self.allowed(query, key, mask, is_causal))[0]
        return output

    def kept(self, logsumexp: Tensor) -> Tensor:
        return logsumexp

    def scores_again(self, query: Tensor, keys: Tensor) -> Tensor:
        """One product after another, from the last element of a head to the first."""
        products = (query[..., k, None] * keys[..., None, :, k] for k in reversed(range(query.shape[-1])))
        return sum(products, torch.zeros_like(query[..., :1] * keys[..., None, :, 0]))


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, steps: FlashAttention, query: Tensor, key: Tensor, value: Tensor, may: Tensor
    ) -> tuple[Tensor, Tensor]:
        keys, values = (steps.for_queries(steps.wide(each), query.shape[1]) for each in (key, value))
        seen = (steps.wide(query) @ keys.mT * steps.scale(query)).masked_fill(~may, -math.inf)
        output = steps.output(steps.weights(seen, may), values).to(query.dtype)
        logsumexp = steps.kept(torch.logsumexp(seen, -1, keepdim=True))
        ctx.steps = steps
        ctx.save_for_backward(query, key, value, may, output, logsumexp)
        ctx.mark_non_differentiable(logsumexp)
        return output, logsumexp

    @staticmethod
    def backward(ctx: Any, g: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise NotImplementedError("attention: backward with create_graph=True is not supported")
        query, key, value, may, output, logsumexp = ctx.saved_tensors
        steps: FlashAttention = ctx.steps
        scale, q, g = steps.scale(query), steps.wide(query), steps.wide(g)
        keys, values = (steps.for_queries(steps.wide(each), query.shape[1]) for each in (key, value))
        sees = logsumexp.masked_fill(logsumexp == -math.inf, 0.0)
        weights = torch.exp((steps.scores_again(q, keys) * scale).masked_fill(~may, -math.inf) - sees)
        d_scores = weights * (g @ values.mT - (g * steps.wide(output)).sum(-1, keepdim=True))
        d_query = steps.d_query(d_scores, keys, scale).to(query.dtype)
        d_key = steps.over_groups(steps.d_key(d_scores, q, scale), key).to(key.dtype)
        d_value = steps.over_groups(steps.d_value(weights, g), value).to(value.dtype)
        return None, d_query, d_key, d_value, None
