r"""Scaled dot-product attention with PyTorch's meaning: masks, causality, and heads that share keys and values.

    attention(query, key, value, mask=None, is_causal=False) -> output

`query` is (batch, query heads, queries, width), `key` and `value` are (batch, heads, tokens, width). The number of
query heads is a multiple of `heads`; query head h uses key head h // (query heads / heads). `mask` is (batch, 1,
queries, tokens), True where a query may look at a token. With is_causal, query i may look at tokens 0 to i. For a head:

    scores  = query key^T / sqrt(width)        -inf where a query may not look
    weights = softmax(scores)                  over the tokens; 0 for a query that may look nowhere
    output  = weights value

The vector-Jacobian product, with the cotangent g of output, summed over the query heads of one key head:

    d_value   = weights^T g
    d_weights = g value^T
    d_scores  = weights (d_weights - sum(weights d_weights))         or sum(g output), which is equal
    d_query   = d_scores key / sqrt(width)
    d_key     = d_scores^T query / sqrt(width)

Precision. Products of half types are accumulated in float32. Scores, weights, d_weights and d_scores may be rounded to
the dtype, and the rounded weights may be those of d_scores; softmax is computed in float32. The factor 1/sqrt(width)
may be applied to query and key, as its root. Weights may be exp(scores - logsumexp(scores)), as FlashAttention's
backward has them; where scores are some hundreds, the rounding of logsumexp alone makes errors of 1e-5 in float32.

Source: A. Vaswani et al. (2017), formula 1; J. Ainslie et al., "GQA" (2023); T. Dao, "FlashAttention-2" (2023);
`F.scaled_dot_product_attention`. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rounding import stored, wide
from spec.rowwise import Change, Drawn, case, families, ordinary

_Named = dict[str, Tensor]
#: Shared by all query heads of a form: keys and values.
_KEYS = ("batch", "heads", "tokens", "width")


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
    keys, may = for_queries(key, query).mT, allowed(query, key, mask, is_causal)
    scale = 1 / math.sqrt(query.shape[3])
    root = math.sqrt(scale)
    scores = either(lambda: query @ keys * scale, lambda: (query * root) @ (keys * root))
    with wide(scores) as (s,):
        seen = s.masked_fill(~may, -math.inf)
        largest = seen.amax(-1, keepdim=True) if s.shape[3] else s.sum(-1, keepdim=True)
        shift = largest.masked_fill(largest == -math.inf, 0.0)
        exponentials = torch.exp(seen - shift)
        total = exponentials.sum(-1, keepdim=True)
        total = total.masked_fill(total == 0, 1.0)
        weights = either(lambda: exponentials / total, lambda: torch.exp(seen - (shift + total.log())))
    return {"scores": scores, "weights": weights}


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
    p = intermediates(query, key, mask, is_causal)["weights"]
    weights = stored(p, dtype)
    output, d_weights = weights @ values, g @ values.mT
    with wide(d_weights, g, output, weights) as (d_p, wide_g, o, saved):
        used = either(lambda: p, lambda: saved)
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
        "value": shared(weights.mT @ g),
        "mask": query.new_empty(0),
    }


_SYMBOLS = ("batch", "heads", "queries", "tokens", "width")


def _case(name: str, sizes: tuple[int, int, int, int, int], origin: str, *tags: str) -> Case:
    return case(name, dict(zip(_SYMBOLS, sizes, strict=True)), origin, *tags)


_TILE = "tail of a tile"
_CASES = (
    _case("usual", (2, 2, 64, 64, 32), "a small transformer", "size", "benchmark"),
    _case("small", (2, 2, 3, 5, 4), "fits gradcheck; more tokens than queries", "size", "small"),
    _case("more-queries", (2, 2, 5, 3, 2), "fewer tokens than queries", "size", "small"),
    _case("square", (2, 2, 4, 4, 4), "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-query", (2, 2, 1, 33, 8), "a step of decoding", "size"),
    _case("one-token", (2, 2, 7, 1, 8), "a single token: all weights are 1", "size"),
    _case("width-1", (2, 2, 9, 9, 1), "one number a head", "size"),
    _case("no-batch", (0, 2, 3, 5, 4), "the last, empty batch of a data loader", "size"),
    *(_case(f"tokens-{n}", (2, 1, 7, n, 8), f"{_TILE} of tokens", "size") for n in (31, 65, 129, 1025)),
    *(_case(f"queries-{n}", (2, 1, n, 9, 8), f"{_TILE} of queries", "size") for n in (17, 65, 129)),
    *(_case(f"width-{n}", (2, 1, 9, 9, n), "widths of kernels and their tails", "size") for n in (33, 72, 128)),
)
_VIT, _WHISPER = "google/vit-base-patch16-224/config.json", "openai/whisper-small/config.json"
_MODELS = (
    _case("vit-b-16", (1, 12, 197, 197, 64), f"{_VIT}: 12 heads of 64, 196 patches and a token", "size", "model"),
    _case("whisper-small", (1, 12, 1, 1500, 64), f"{_WHISPER}: 12 heads of 64, 1500 positions", "size", "model"),
)
_8B = "Meta-Llama-3-8B/config.json: 32 heads of 128 that share 8"
_LLAMA = (
    _case("llama-3-8b", (1, 8, 1, 512, 128), f"{_8B}, a step of decoding", "size", "model"),
    _case("llama-3-8b-prompt", (1, 8, 2048, 2048, 128), f"{_8B}, a prompt", "benchmark", "model"),
)


def _few(*names: str) -> tuple[Case, ...]:
    usual = ("usual", "small", "square", "one-query", "tokens-65", "queries-17")
    return tuple(each for each in _CASES if each.name in (*usual, *names))


def _sharp(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["query"] *= 10.0


def _shifted(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    query, key = drawn["query"], drawn["key"]
    key[..., :1] = 40.0
    query[..., :1] = draw.choice((*query.shape[:3], 1), (8.0, -8.0)) * math.sqrt(key.shape[3])


def _equal(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["key"][:] = drawn["key"][:, :, :1].clone()


def _later(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["key"] *= torch.linspace(0.1, 3.0, drawn["key"].shape[2], dtype=torch.float64)[:, None]


def _nan(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["query"][:1, :1, :1, :1] = math.nan


def _nowhere(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:, :, ::2] = 0


def _one(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:] = 0
    drawn["mask"][..., -1:] = 1


_VALUES: dict[str, tuple[str, Change]] = {
    "sharp": ("one weight of nearly 1 for each query", _sharp),
    "shifted": ("scores of some hundreds: exp overflows, or all of it underflows", _shifted),
    "equal-keys": ("all keys equal: all weights equal, and the gradients cancel", _equal),
    "later-larger": ("scores grow with the token: the largest one so far changes from tile to tile", _later),
}
_SEES_ALL: dict[str, tuple[str, Change]] = {
    "non-finite": ("NaN in one query: the outputs of the others stay finite", _nan)
}
_MASKED: dict[str, tuple[str, Change]] = {
    "nowhere": ("every other query may look nowhere: output and gradients 0", _nowhere),
    "one-token": ("each query may look at the last token alone: its value", _one),
}


def _form(
    name: str,
    cases: tuple[Case, ...],
    *,
    grouped: bool = False,
    masked: bool = False,
    is_causal: bool = False,
    forms: tuple[Operator, ...] = (),
) -> Operator:
    queries = ("batch", "4*heads" if grouped else "heads", "queries", "width")
    tensors = (TensorArg("query", queries), TensorArg("key", _KEYS), TensorArg("value", _KEYS))
    mask = TensorArg("mask", ("batch", "1", "queries", "tokens"), differentiable=False, dtype=torch.bool, optional=True)
    inputs = (*tensors, mask) if masked else tensors
    scores = (*queries[:3], "tokens")
    product = f"2*{'*'.join(scores)}*width"

    def dominant(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["query"][:], drawn["key"][:] = 0.0, 0.0
        drawn["query"][..., :1], drawn["key"][:, :, :1, :1] = 128.0, 100.0 * sizes["width"] ** 0.5
        if masked:
            drawn["mask"][:] = 1
        return drawn

    def of_dominant(query: Tensor, _key: Tensor, value: Tensor, *_: Tensor) -> dict[str, Tensor]:
        return {"output": for_queries(value[:, :, :1], query).expand(query.shape)}

    return Formulas("attention", ("query", "key", "value", "mask"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        {"is_causal": True} if is_causal else {},
        outputs=(TensorArg("output", queries),),
        autocast=LOWER,
        forms=forms,
        cases=cases,
        families=families(inputs, _VALUES | (_MASKED if masked else {} if is_causal else _SEES_ALL)),
        invariants=(
            Invariant(
                "dominant",
                "a first token with scores far above all others gives its value",
                dominant,
                of_dominant,
                bitwise=True,
            ),
        ),
        flops=(f"2*{product}", f"4*{product}"),
        saved=(
            *(TensorArg(each, scores) for each in ("scores", "exponentials", "weights")),
            *(TensorArg(each, scores[:3]) for each in ("largest", "total", "logsumexp")),
            *(TensorArg(each, (*queries[:2], "tokens", "width")) for each in ("keys", "values") if grouped),
        ),
    )


OPERATOR = _form(
    "full",
    (*_CASES, *_MODELS),
    forms=(
        _form("causal", _few("more-queries", "tokens-129"), is_causal=True),
        _form("mask", _few("tokens-129"), masked=True),
        _form("grouped", (*_few(), *_LLAMA), grouped=True),
    ),
)
