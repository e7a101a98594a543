"""The formulas that contracts of attention share: `spec.attention` has them in its docstring, with their precision.

Scores of backward. FlashAttention keeps logsumexp and computes the scores again, by a product of other tiles. Their
errors are not those of forward's scores, which are in logsumexp. So the weights of backward do not add up to 1: each is
wrong by w (e' - e), with e and e' the errors of its score in backward and of the largest ones in forward. A weight of
1, which errors of forward's scores alone would not change, is wrong by that too. So in half of the runs d_value and
d_scores are made of such weights, and the output in d_scores of those of forward. In half types both have the scores in
float32, where e' - e is nothing beside the rounding of a weight, so nothing is added there.

Rounded scores. A score s is wrong by up to e = 3 u |s|: query and key are rounded after the root of the factor, and so
is their product. Let E = e + sum(weights e), the error of a score plus that of the others by weight. The odds w/(1 - w)
of a weight change by a factor of up to r = exp(E), so the weight changes by up to

    w (1 - w) (r - 1) / (1 + w (r - 1)) <= w (1 - w) E + w (1 - w) (r - 1 - E) / (1 + w (r - 1))

The runs of `spec.rounding` find the first term. The second is nothing where E is small. Where scores are 320 in
bfloat16, E is 7: few runs have the one error that gives a token the weight of its neighbours, and an implementation has
it in some of thousands of elements. So each run changes each weight by the second term, up or down. It is below 1 - w:
a weight that is sure stays sure, and one that is 0 stays 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from spec.blocks import of_half, one_rounding, stored, wide
from spec.contract import LOWER, TensorArg
from spec.formulas import either

_Named = dict[str, Tensor]
#: Roundings of a score: of query and key times the root of the factor, and of their product.
_ROUNDINGS = 3
#: exp of it is finite in float32.
_LARGEST = 80.0


def allowed(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool) -> Tensor:
    """Where a query may look at a token: Boolean, (queries, tokens), or (batch, 1, queries, tokens) with a mask."""
    if mask is None:
        mask = query.new_ones((query.shape[2], key.shape[2]), dtype=torch.bool)
    return mask.tril() if is_causal else mask.bool()


def for_queries(tensor: Tensor, query: Tensor) -> Tensor:
    """Keys or values, once for each query head."""
    groups = query.shape[1] // max(tensor.shape[1], 1)
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)


def intermediates(
    query: Tensor, key: Tensor, mask: Tensor | None = None, is_causal: bool = False, **_: Tensor
) -> _Named:
    """scores and weights, of shape (batch, query heads, queries, tokens)."""
    scores, weights, _again = _weights(query, key, mask, is_causal)
    return {"scores": scores, "weights": weights}


def _weights(
    query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, *, again: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Scores and weights, and with `again` the weights of scores that backward computes anew."""
    keys, may = for_queries(key, query).mT, allowed(query, key, mask, is_causal)
    scale = 1 / math.sqrt(query.shape[3])
    root = math.sqrt(scale)
    product = query @ keys * scale
    scores = either(lambda: product, lambda: (query * root) @ (keys * root))
    rounding = one_rounding(scores.detach())
    with wide(scores, product) as (s, anew):
        seen = s.masked_fill(~may, -math.inf)
        largest = seen.amax(-1, keepdim=True) if s.shape[3] else s.sum(-1, keepdim=True)
        shift = largest.masked_fill(largest == -math.inf, 0.0)
        exponentials = torch.exp(seen - shift)
        total = exponentials.sum(-1, keepdim=True)
        total = total.masked_fill(total == 0, 1.0)
        weights = either(lambda: exponentials / total, lambda: torch.exp(seen - (shift + total.log())))
        beyond = _beyond_first_order(weights.detach(), rounding)
        weights = weights + beyond
        if not again or of_half():
            return scores, weights, weights
        seen_again = anew.masked_fill(~may, -math.inf)
        by_sum = either(lambda: weights, lambda: torch.exp(seen_again - (shift + total.log())) + beyond)
    return scores, weights, by_sum


def _beyond_first_order(weights: Tensor, rounding: Tensor) -> Tensor:
    """0; under rounding, what errors of the scores change weights by beyond the first order."""
    size = rounding.abs()
    error = (_ROUNDINGS * (size + (weights * size).sum(-1, keepdim=True))).clamp(max=_LARGEST)
    odds = torch.expm1(error)
    return rounding.sign() * weights * (1 - weights) * (odds - error) / (1 + weights * odds)


def forward(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, is_causal: bool = False
) -> tuple[Tensor]:
    """(output,), of the shape of query."""
    weights = stored(intermediates(query, key, mask, is_causal)["weights"], query.dtype)
    return (weights @ for_queries(value, query),)


def vjp(
    cotangents: tuple[Tensor, ...],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of the module's docstring; an empty tensor for the mask."""
    (g,), dtype, scale = cotangents, query.dtype, 1 / math.sqrt(query.shape[3])
    keys, values = for_queries(key, query), for_queries(value, query)
    _, p, p_again = _weights(query, key, mask, is_causal, again=True)
    weights = stored(p, dtype)
    weights_again = weights if p_again is p else stored(p_again, dtype)
    output, d_weights = weights @ values, g @ values.mT
    with wide(d_weights, g, output, weights_again) as (d_p, wide_g, o, saved):
        used = either(lambda: p_again, lambda: saved)
        mean = either(lambda: (used * d_p).sum(-1, keepdim=True), lambda: (wide_g * o).sum(-1, keepdim=True))
        d_scores = used * (d_p - mean)
    d_scores = stored(d_scores, dtype)

    def shared(gradient: Tensor) -> Tensor:
        """The sum over the query heads of each key head."""
        groups = query.shape[1] // max(key.shape[1], 1)
        return gradient if groups == 1 else gradient.view(*key.shape[:2], groups, *key.shape[2:]).sum(2)

    return {
        "query": d_scores @ keys * scale,
        "key": shared(d_scores.mT @ query * scale),
        "value": shared(weights_again.mT @ g),
        "mask": query.new_empty(0),
    }


def costs(product: str, scores: tuple[str, ...], repeated: tuple[str, ...] | None) -> dict[str, Any]:
    """What the contracts say of their costs, as fields of `Operator`.

    `product` counts the operations of a product with the scores, `scores` is their shape, and `repeated` that of keys
    and values once for each query head, where heads share them.
    """
    of_rows = (TensorArg(each, scores[:-1]) for each in ("largest", "total", "logsumexp"))
    of_heads = (TensorArg(each, repeated) for each in ("keys", "values") if repeated)
    of_scores = (TensorArg(each, scores) for each in ("scores", "exponentials", "weights"))
    return {
        "autocast": LOWER,
        "flops": (f"2*{product}", f"4*{product}"),
        "saved": (*of_scores, *of_rows, *of_heads),
    }
