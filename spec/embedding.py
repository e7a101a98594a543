r"""Embedding: the rows of a table by their indices, with the arguments of `torch.embedding`.

    embedding(weight, indices) -> output

`weight` is the table, (entries, features); `indices` (int64) has any shape. An index is at least 0 and
below entries.

    output[..., :] = weight[indices[...], :]

The vector-Jacobian product, with the cotangent g of output, for an entry e:

    d_weight[e, :] = sum of g[..., :] over all places whose index is e

F.embedding's `padding_idx` is not part of it: it makes a gradient 0 that is not the derivative.

Precision. The output has the bits of the table. d_weight is added up in float32 for float16 and bfloat16, and rounded
once: a frequent entry has thousands of terms.

Source: Y. Bengio et al., "A neural probabilistic language model" (2003); `F.embedding`. The derivation is ours;
`tests/spec` checks it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spec.blocks import stored, wide
from spec.contract import Case, Operator, TensorArg
from spec.forms import Cases, Formulas, Shape, Tensors
from spec.rowwise import case, families
from spec.values import embedding as values


def forward(weight: Tensor, indices: Tensor) -> tuple[Tensor]:
    """(output,), of the shape of the indices and a dimension of features."""
    return (weight.index_select(0, indices.flatten()).view(*indices.shape, weight.shape[1]),)


def intermediates(weight: Tensor, indices: Tensor) -> dict[str, Tensor]:
    """The output: there is no step before it."""
    return {"output": forward(weight, indices)[0]}


def vjp(cotangents: Tensors, weight: Tensor, indices: Tensor) -> dict[str, Tensor]:
    """The gradient of the table; indices have none."""
    flat, rows = indices.flatten(), cotangents[0].reshape(indices.numel(), weight.shape[1])
    with wide(rows) as (g,):
        gradient = torch.zeros_like(weight, dtype=g.dtype).scatter_add(0, flat.unsqueeze(-1).expand(g.shape), g)
    return {"weight": stored(gradient, weight.dtype), "indices": indices.new_empty(0)}


def _form(name: str, shape: Shape, cases: Cases, *forms: Operator) -> Operator:
    indices = TensorArg("indices", shape, differentiable=False, dtype=torch.int64, high="entries", any_rank=True)
    inputs = (TensorArg("weight", ("entries", "features")), indices)
    output = TensorArg("output", (*shape, "features"))
    elements = "*".join(output.shape)

    return Formulas("embedding", ("weight", "indices"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        outputs=(output,),
        forms=forms,
        cases=cases,
        families=families(inputs, values.CHANGES),
        invariants=(values.copied(inputs),),
        elementwise=(f"2*{elements}", f"{elements} + entries*features"),
    )


def _case(name: str, batch: int, entries: int, features: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "entries": entries, "features": features}, origin, *tags)


_TAILS = (3, 4, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1025)
_CASES = (
    _case("usual", 64, 100, 64, "a small vocabulary", "size", "benchmark"),
    _case("small", 4, 3, 5, "fits gradcheck; one entry at least is repeated", "size", "small"),
    _case("square", 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-entry", 5, 1, 3, "a table of one row", "size", "small"),
    _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
    *(_case(f"features-{size}", 5, 7, size, "tail of a vector, a warp or a block", "size") for size in _TAILS),
    _case("frequent", 4099, 3, 5, "thousands of terms for each entry", "size"),
    _case("batch-70000", 70000, 5, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("more-than-2^31", 2**20 + 3, 1000, 2100, "an output of more than 2^31 elements", "large"),
    _case("gpt-2", 1024, 50257, 768, "gpt2/config.json: vocab_size, n_embd, n_positions", "benchmark", "model"),
    _case("llama-3-8b", 8192, 128256, 4096, "Meta-Llama-3-8B/config.json: vocab_size, hidden_size", "model"),
)
_TOKENS = (
    case("small", {"batch": 2, "tokens": 3, "entries": 4, "features": 5}, "rank 2", "size", "small"),
    case("wide", {"batch": 3, "tokens": 7, "entries": 5, "features": 260}, "a tail behind a block of 256", "size"),
)
OPERATOR = _form("rows", ("batch",), _CASES, _form("tokens", ("batch", "tokens"), _TOKENS))
