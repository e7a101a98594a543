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

from torch import Tensor

from spec import scaled_dot_product
from spec.contract import Case, Operator, TensorArg
from spec.forms import Formulas, Tensors
from spec.packing import in_batch, in_pack, of_one_sequence, offsets
from spec.rowwise import case, families
from spec.values import attention_varlen as values


def intermediates(
    query: Tensor, key: Tensor, cu_seqlens: Tensor, is_causal: bool = False, **_: Tensor
) -> dict[str, Tensor]:
    """scores and weights, of shape (1, query heads, tokens, tokens)."""
    mask = of_one_sequence(cu_seqlens, len(query))
    return scaled_dot_product.intermediates(in_batch(query), in_batch(key), mask, is_causal)


def forward(query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False) -> tuple[Tensor]:
    """(output,), of the shape of query."""
    mask = of_one_sequence(cu_seqlens, len(query))
    (output,) = scaled_dot_product.forward(in_batch(query), in_batch(key), in_batch(value), mask, is_causal)
    return (in_pack(output),)


def vjp(
    cotangents: Tensors, query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of `spec.attention`; an empty tensor for the offsets."""
    (g,), mask = map(in_batch, cotangents), of_one_sequence(cu_seqlens, len(query))
    found = scaled_dot_product.vjp((g,), in_batch(query), in_batch(key), in_batch(value), mask, is_causal)
    return {name: in_pack(found[name]) for name in ("query", "key", "value")} | {"cu_seqlens": query.new_empty(0)}


def _form(
    name: str, cases: tuple[Case, ...], *forms: Operator, grouped: bool = False, causal: bool = False
) -> Operator:
    of_queries, of_keys = ("tokens", "4*heads" if grouped else "heads", "width"), ("tokens", "heads", "width")
    tensors = (TensorArg("query", of_queries), TensorArg("key", of_keys), TensorArg("value", of_keys))
    inputs = (*tensors, offsets("cu_seqlens", "sequences", "tokens"))
    scores = (of_queries[1], "tokens", "tokens")
    # Of all pairs of tokens, those of one sequence: least if all sequences are of one length.
    product = f"2*{'*'.join(scores)}*width/sequences"
    signature = ("query", "key", "value", "cu_seqlens")
    return Formulas("attention_varlen", signature, forward, vjp, intermediates).in_form(
        name,
        inputs,
        {"is_causal": True} if causal else {},
        outputs=(TensorArg("output", of_queries),),
        forms=forms,
        cases=cases,
        families=families(inputs, values.CHANGES),
        invariants=(values.dominant(inputs),),
        **scaled_dot_product.costs(product, scores, of_queries if grouped else None),
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
    _form("causal", (*_FEW, _CASES[6]), causal=True),
    _form("grouped", (*_FEW, *_LLAMA), grouped=True, causal=True),
)
