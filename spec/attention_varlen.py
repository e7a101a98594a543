r"""Attention over a packed batch: sequences of any lengths one after another, with the arguments of FlashAttention.

    attention_varlen(query, key, value, cu_seqlens, is_causal=False) -> output

`query` is (tokens, query heads, width), `key` and `value` are (tokens, heads, width). The number of query heads is a
multiple of `heads`; query head h uses key head h // (query heads / heads). `cu_seqlens` (int32) has the offsets of the
sequences: sequence s has the tokens from cu_seqlens[s] up to, but without, cu_seqlens[s + 1]. It begins with 0, does
not fall, and ends with the number of tokens. A sequence may be empty. For each sequence and head, output is
`spec.attention` of its tokens. So a token sees those of its own sequence alone, and with is_causal those up to itself:

    scores[i, j]  = query[i] key[j]^T / sqrt(width)        -inf unless i and j are of one sequence (and j <= i)
    weights       = softmax(scores)                        over j
    output        = weights value

The vector-Jacobian product is that of `spec.attention`, with the same weights.

What is open. What happens with other offsets: no implementation can look at their values without waiting for the
device. And whether NaN or infinity in a token reaches the other sequences: who masks multiplies them by 0.

Precision. That of `spec.attention`.

Source: `flash_attn_varlen_func` of Dao-AILab/flash-attention, where queries and keys have the same offsets, without
dropout and windows; `torch.nn.attention.varlen.varlen_attn`. The derivation is that of `spec.attention`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from spec import scaled_dot_product
from spec.contract import LOWER, Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.rowwise import Change, Drawn, case, families, ordinary


def sequence_of(cu_seqlens: Tensor, tokens: int) -> Tensor:
    """(tokens,): the number of the sequence that each token belongs to."""
    place = torch.arange(tokens, device=cu_seqlens.device)
    return (place.unsqueeze(-1) >= cu_seqlens[1:]).sum(-1)


def in_batch(packed: Tensor) -> Tensor:
    """(tokens, heads, width) as (1, heads, tokens, width)."""
    return packed.transpose(0, 1).unsqueeze(0)


def _packed(batch: Tensor) -> Tensor:
    return batch.squeeze(0).transpose(0, 1)


def _mask(query: Tensor, cu_seqlens: Tensor) -> Tensor:
    sequence = sequence_of(cu_seqlens, query.shape[0])
    return (sequence.unsqueeze(-1) == sequence).unsqueeze(0).unsqueeze(0)


def intermediates(
    query: Tensor, key: Tensor, cu_seqlens: Tensor, is_causal: bool = False, **_: Tensor
) -> dict[str, Tensor]:
    """scores and weights, of shape (1, query heads, tokens, tokens)."""
    mask = _mask(query, cu_seqlens)
    return scaled_dot_product.intermediates(in_batch(query), in_batch(key), mask, is_causal)


def forward(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False) -> tuple[Tensor]:
    """(output,), of the shape of query."""
    mask = _mask(query, cu_seqlens)
    (output,) = scaled_dot_product.forward(in_batch(query), in_batch(key), in_batch(value), mask, is_causal)
    return (_packed(output),)


def vjp(
    cotangents: tuple[Tensor, ...],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens: Tensor,
    is_causal: bool = False,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of `spec.attention`; an empty tensor for the offsets."""
    (g,), mask = map(in_batch, cotangents), _mask(query, cu_seqlens)
    found = scaled_dot_product.vjp((g,), in_batch(query), in_batch(key), in_batch(value), mask, is_causal)
    gradients = {name: _packed(found[name]) for name in ("query", "key", "value")}
    return {**gradients, "cu_seqlens": query.new_empty(0)}


def _on_heads(change: Change) -> Change:
    """A change of the tensors of `spec.attention`, through views."""

    def changed(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        change({name: in_batch(drawn[name]) for name in ("query", "key", "value")}, draw, dtype)

    return changed


def _last_only(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["cu_seqlens"][:-1] = 0


def _first_only(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["cu_seqlens"][1:] = len(drawn["query"])


def _single_tokens(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    offsets = drawn["cu_seqlens"]
    offsets[:-1] = torch.arange(len(offsets) - 1).clamp(max=len(drawn["query"]))


def _every_other(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    offsets = drawn["cu_seqlens"]
    inner = offsets[1:-1]
    inner[1::2] = inner[: len(inner) // 2 * 2 : 2]


_CHANGES: dict[str, tuple[str, Change]] = {
    **{name: (purpose, _on_heads(change)) for name, (purpose, change) in scaled_dot_product.VALUES.items()},
    "last-only": ("all tokens in the last sequence, behind empty ones", _last_only),
    "first-only": ("all tokens in the first sequence, before empty ones", _first_only),
    "single-tokens": ("sequences of one token, and a last one of the rest", _single_tokens),
    "every-other": ("every other sequence empty", _every_other),
}


def _form(
    name: str, cases: tuple[Case, ...], *forms: Operator, grouped: bool = False, is_causal: bool = False
) -> Operator:
    of_queries, of_keys = ("tokens", "4*heads" if grouped else "heads", "width"), ("tokens", "heads", "width")
    tensors = (TensorArg("query", of_queries), TensorArg("key", of_keys), TensorArg("value", of_keys))
    offsets = TensorArg(
        "cu_seqlens", ("sequences + 1",), differentiable=False, dtype=torch.int32, high="tokens", offsets=True
    )
    inputs = (*tensors, offsets)
    scores = (of_queries[1], "tokens", "tokens")
    # Of all pairs of tokens, those of one sequence: least if all sequences are of one length.
    product = f"2*{'*'.join(scores)}*width/sequences"

    def dominant(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["query"][:], drawn["key"][:] = 0.0, 0.0
        drawn["query"][..., 0] = 128.0
        first = drawn["cu_seqlens"][:-1]
        drawn["key"][first[first < sizes["tokens"]], :, 0] = 100.0 * sizes["width"] ** 0.5
        return drawn

    def of_dominant(query: Tensor, _key: Tensor, value: Tensor, cu_seqlens: Tensor) -> dict[str, Tensor]:
        first = cu_seqlens[sequence_of(cu_seqlens, len(query))]
        return {"output": value[first].repeat_interleave(query.shape[1] // max(value.shape[1], 1), 1)}

    signature = ("query", "key", "value", "cu_seqlens")
    return Formulas("attention_varlen", signature, forward, vjp, intermediates).in_form(
        name,
        inputs,
        {"is_causal": True} if is_causal else {},
        outputs=(TensorArg("output", of_queries),),
        autocast=LOWER,
        forms=forms,
        cases=cases,
        families=families(inputs, _CHANGES),
        invariants=(
            Invariant(
                "dominant",
                "a first token of each sequence with scores far above all others gives its value",
                dominant,
                of_dominant,
                bitwise=True,
            ),
        ),
        flops=(f"2*{product}", f"4*{product}"),
        saved=(
            *(TensorArg(each, scores) for each in ("scores", "exponentials", "weights")),
            *(TensorArg(each, scores[:2]) for each in ("largest", "total", "logsumexp")),
            *(TensorArg(each, of_queries) for each in ("keys", "values") if grouped),
        ),
    )


def _case(name: str, sizes: tuple[int, int, int, int], origin: str, *tags: str) -> Case:
    return case(name, dict(zip(("tokens", "heads", "width", "sequences"), sizes, strict=True)), origin, *tags)


_TILE = "tail of a tile"
_FEW = (
    _case("usual", (128, 2, 32, 5), "a small transformer", "size", "benchmark"),
    _case("small", (13, 2, 4, 3), "fits gradcheck; every size another", "size", "small"),
    _case("square", (4, 4, 4, 4), "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("no-tokens", (0, 2, 4, 3), "a batch of empty sequences", "size"),
    _case("tokens-65", (65, 2, 8, 3), f"{_TILE} of tokens", "size"),
)
_CASES = (
    *_FEW,
    _case("one-sequence", (5, 2, 3, 1), "nothing but attention", "size", "small"),
    _case("more-sequences", (3, 1, 2, 8), "more sequences than tokens: some are empty", "size", "small"),
    _case("one-token", (1, 2, 8, 3), "a single token: its weight is 1", "size"),
    *(_case(f"tokens-{n}", (n, 1, 8, 4), f"{_TILE} of tokens", "size") for n in (17, 31, 129, 289)),
    *(_case(f"width-{n}", (9, 1, n, 2), "widths of kernels and their tails", "size") for n in (1, 33, 72, 128)),
    *(_case(f"sequences-{n}", (150, 1, 4, n), "more sequences than a block has threads", "size") for n in (33, 129)),
)
_8B = "Meta-Llama-3-8B/config.json: 32 heads of 128 that share 8"
_LLAMA = (
    _case("llama-3-8b", (67, 8, 128, 3), f"{_8B}; three short prompts", "size", "model"),
    _case("llama-3-8b-prompts", (2048, 8, 128, 8), f"{_8B}; prompts of 256 tokens in the mean", "benchmark", "model"),
)
OPERATOR = _form(
    "full",
    _CASES,
    _form("causal", (*_FEW, _CASES[6]), is_causal=True),
    _form("grouped", (*_FEW, *_LLAMA), grouped=True, is_causal=True),
)
