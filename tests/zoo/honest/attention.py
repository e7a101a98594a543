"""Attention written out in steps, each a method: right as it stands, and wrong in one way when one is overridden."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from backends._python.attention import check_attention_arguments


class Attention:
    """The honest attention: every step as `spec/attention.py` states it, half types in float32."""

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        self.check(query, key, value, mask, is_causal)
        return _Function.apply(self, query, key, value, mask, is_causal)

    def check(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool) -> None:
        check_attention_arguments(query, key, value, mask, is_causal)

    # forward

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

    def scale(self, query: Tensor) -> float:
        return 1 / math.sqrt(query.shape[-1])

    def for_queries(self, shared: Tensor, heads: int) -> Tensor:
        return shared.repeat_interleave(heads // shared.shape[1], 1)

    def causal(self, queries: int, tokens: int, device: torch.device) -> Tensor:
        return torch.ones(queries, tokens, dtype=torch.bool, device=device).tril()

    def allowed(self, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
        if is_causal:
            return self.causal(query.shape[2], key.shape[2], query.device)
        return torch.ones((), dtype=torch.bool, device=query.device) if mask is None else mask

    def largest(self, scores: Tensor) -> Tensor:
        return scores.amax(-1, keepdim=True) if scores.shape[-1] else scores.sum(-1, keepdim=True)

    def total(self, exponentials: Tensor) -> Tensor:
        return exponentials.sum(-1, keepdim=True)

    def weights(self, scores: Tensor, may: Tensor) -> Tensor:
        seen = scores.masked_fill(~may, -math.inf)
        exponentials = torch.exp(seen - self.largest(seen).nan_to_num(math.nan, math.inf, 0.0))
        total = self.total(exponentials)
        return exponentials / torch.where(total == 0, torch.ones_like(total), total)

    def output(self, weights: Tensor, values: Tensor) -> Tensor:
        return weights @ values

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def d_scores(self, weights: Tensor, d_weights: Tensor) -> Tensor:
        return weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))

    def d_query(self, d_scores: Tensor, keys: Tensor, scale: float) -> Tensor:
        return d_scores @ keys * scale

    def d_key(self, d_scores: Tensor, query: Tensor, scale: float) -> Tensor:
        return d_scores.mT @ query * scale

    def d_value(self, weights: Tensor, g: Tensor) -> Tensor:
        return weights.mT @ g

    def over_groups(self, gradient: Tensor, shared: Tensor) -> Tensor:
        return self.by_group(gradient, shared).sum(2)

    def by_group(self, gradient: Tensor, shared: Tensor) -> Tensor:
        groups = gradient.shape[1] // shared.shape[1]
        return gradient.reshape(*shared.shape[:2], groups, *shared.shape[2:])


class _Function(torch.autograd.Function):
    """Forward and backward by the steps. Backward recomputes the weights from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(
        ctx: Any, steps: Attention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        ctx.steps, ctx.is_causal = steps, is_causal
        ctx.save_for_backward(query, key, value, mask)
        weights = _weights(steps, query, key, mask, is_causal)
        values = steps.for_queries(steps.wide(value), query.shape[1])
        return steps.output(weights, values).to(query.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        steps: Attention = ctx.steps
        query, key, value, mask = ctx.saved_tensors
        weights, scale = _weights(steps, query, key, mask, ctx.is_causal), steps.scale(query)
        keys, values = (steps.for_queries(steps.wide(each), query.shape[1]) for each in (key, value))
        g = steps.wide(steps.cotangent(g))
        d_scores = steps.d_scores(weights, g @ values.mT)
        d_query = steps.d_query(d_scores, keys, scale).to(query.dtype)
        d_key = steps.over_groups(steps.d_key(d_scores, steps.wide(query), scale), key).to(key.dtype)
        d_value = steps.over_groups(steps.d_value(weights, g), value).to(value.dtype)
        return None, d_query, d_key, d_value, None, None


def _weights(steps: Attention, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    keys = steps.for_queries(steps.wide(key), query.shape[1])
    scores = steps.wide(query) @ keys.mT * steps.scale(query)
    return steps.weights(scores, steps.allowed(query, key, mask, is_causal))
