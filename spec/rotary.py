r"""Rotary position embedding: pairs of the elements of a head are turned by an angle that grows with the position.

    rotary(input, cos, sin, interleaved=False) -> output

`input` is (batch, tokens, heads, 2*half), `cos` and `sin` are (tokens, half), the cosine and sine of the angle of each
pair. A pair (x1, x2) is element i and i + half of a head (GPT-NeoX, Llama), or 2i and 2i + 1 if interleaved (GPT-J):

    output1 = x1 cos - x2 sin
    output2 = x2 cos + x1 sin

The vector-Jacobian product, with the cotangents g1 and g2 of the pair, turns back:

    d_x1 = g1 cos + g2 sin
    d_x2 = g2 cos - g1 sin

cos and sin have no gradient: they depend on the position alone.

Precision. Products and sums may be rounded to the dtype, as where `x * cos + rotate_half(x) * sin` is computed in it.

Source: J. Su et al., "RoFormer" (2021), formula 34; transformers' `apply_rotary_pos_emb`. The derivation is ours;
`tests/spec` checks it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spec.contract import Case, Operator, TensorArg
from spec.forms import Cases, Formulas, Tensors
from spec.rowwise import case, families
from spec.values import rotary as values

Pair = tuple[Tensor, Tensor]


def pairs(tensor: Tensor, interleaved: bool) -> Pair:
    """(x1, x2), each with a last dimension of half the length."""
    if interleaved:
        return tensor[..., ::2], tensor[..., 1::2]
    half = tensor.shape[-1] // 2
    return tensor[..., :half], tensor[..., half:]


def joined(pair: Pair, interleaved: bool) -> Tensor:
    """The tensor of which these are the pairs."""
    return torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)


def turned(tensor: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    """Every pair turned by its angle."""
    (x1, x2), cos, sin = pairs(tensor, interleaved), cos.unsqueeze(1), sin.unsqueeze(1)
    return joined((x1 * cos - x2 * sin, x2 * cos + x1 * sin), interleaved)


def forward(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    return (turned(input, cos, sin, interleaved),)


def intermediates(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> dict[str, Tensor]:
    """The output: there is no step before it."""
    return {"output": turned(input, cos, sin, interleaved)}


def vjp(cotangents: Tensors, input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> dict[str, Tensor]:
    """The gradient of the input by name: the cotangent turned back."""
    none = input.new_empty(0)
    return {"input": turned(cotangents[0], cos, -sin, interleaved), "cos": none, "sin": none}


def _form(name: str, cases: Cases, *forms: Operator, **given: bool) -> Operator:
    shape, angles = ("batch", "tokens", "heads", "2*half"), ("tokens", "half")
    tables = (TensorArg(each, angles, differentiable=False, scale="0.7") for each in ("cos", "sin"))
    inputs, elements = (TensorArg("input", shape), *tables), "*".join(shape)

    def exchanged(input: Tensor, *_: Tensor) -> dict[str, Tensor]:
        x1, x2 = pairs(input, bool(given))
        return {"output": joined((-x2, x1), bool(given))}

    return Formulas("rotary", ("input", "cos", "sin"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        given,
        outputs=(TensorArg("output", shape),),
        forms=forms,
        cases=cases,
        families=families(inputs, values.CHANGES),
        invariants=(values.quarter_turn(inputs, exchanged),),
        elementwise=(f"2*{elements} + 2*tokens*half", f"2*{elements} + 2*tokens*half"),
    )


def _case(name: str, sizes: tuple[int, int, int, int], origin: str, *tags: str) -> Case:
    return case(name, dict(zip(("batch", "tokens", "heads", "half"), sizes, strict=True)), origin, *tags)


_TAILS = (5, 16, 31, 33, 64, 129)
_CASES = (
    _case("usual", (2, 16, 4, 32), "a small transformer", "size", "benchmark"),
    _case("small", (2, 3, 4, 5), "fits gradcheck", "size", "small"),
    _case("square", (2, 2, 2, 2), "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-pair", (2, 3, 1, 1), "heads of two elements", "size", "small"),
    _case("no-batch", (0, 3, 2, 4), "the last, empty batch of a data loader", "size"),
    *(
        _case(f"half-{n}", (2, 3, 2, n), "tail of a vector, a warp or a block", "size")
        for n in (5, 16, 31, 33, 64, 129)
    ),
    *(_case(f"tokens-{n}", (1, n, 2, 4), "tail of a block of tokens", "size") for n in (31, 65, 1025)),
    _case("heads-33", (1, 2, 33, 4), "tail of a block of heads", "size"),
    _case("batch-70000", (70000, 1, 1, 2), "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("qwen2.5-0.5b", (1, 8, 14, 32), "Qwen2.5-0.5B/config.json: 14 heads of 64", "size", "model"),
    _case("more-than-2^31", (2**18 + 3, 2, 64, 33), "above 2^31 elements", "large"),
    _case("llama-3-8b", (4, 2048, 32, 64), "Meta-Llama-3-8B/config.json: 32 heads of 128", "benchmark", "model"),
)
_GPT_J = (*_CASES[:5], _case("gpt-j-6b", (1, 8, 16, 32), "gpt-j-6b/config.json: rotary_dim 64", "size", "model"))
OPERATOR = _form("halves", _CASES, _form("interleaved", _GPT_J, interleaved=True))
