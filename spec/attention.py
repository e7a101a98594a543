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

Source: A. Vaswani et al. (2017), formula 1; J. Ainslie et al., "GQA" (2023); T. Dao, "FlashAttention-2" (2023);
`F.scaled_dot_product_attention`. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.rowwise import Change, Drawn, case, families, ordinary
from spec.scaled_dot_product import VALUES, for_queries, forward, intermediates, vjp

#: Shared by all query heads of a form: keys and values.
_KEYS = ("batch", "heads", "tokens", "width")


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


def _nan(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["query"][:1, :1, :1, :1] = math.nan


def _nowhere(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:, :, ::2] = 0


def _one(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:] = 0
    drawn["mask"][..., -1:] = 1


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
        families=families(inputs, VALUES | (_MASKED if masked else {} if is_causal else _SEES_ALL)),
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
