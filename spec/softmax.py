r"""Softmax of each row: softmax(input) -> output, over the last dimension, of a tensor of any rank.

For a row x of N elements, with sums and the largest element over it:

    shifted      = x - max(x)                    at most 0, so that no exponential overflows
    exponentials = exp(shifted)
    output       = exponentials / sum(exponentials)

It may also be computed as exp(shifted - log(sum(exponentials))), which is equal; and so may y in the gradient.

The vector-Jacobian product, from the output y. Let g be its cotangent; dy_i/dx_j = y_i ([i = j] - y_j):

    d_input = y (g - sum(g y))

Precision. For float16 and bfloat16, all of this is computed in float32, and rounded once; y may be the rounded output
in the gradient. A row that holds +inf or NaN is NaN; -inf is an element of weight 0.

Source: J. S. Bridle (1990); `torch.softmax`. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from spec import rowwise
from spec.blocks import of_half, stored, wide
from spec.contract import FLOAT32, Case, Operator, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rowwise import case
from spec.values import softmax as values


def intermediates(input: Tensor) -> dict[str, Tensor]:
    """shifted, exponentials, and their sum with the last dimension 1."""
    with wide(input) as (x,):
        shifted = x - x.amax(-1, keepdim=True) if x.shape[-1] else x
        exponentials = shifted.exp()
        return {"shifted": shifted, "exponentials": exponentials, "total": exponentials.sum(-1, keepdim=True)}


def forward(input: Tensor) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    shifted, exponentials, total = intermediates(input).values()
    with wide():
        output = either(lambda: exponentials / total, lambda: torch.exp(shifted - total.log()))
    return (stored(output, input.dtype),)


def vjp(cotangents: tuple[Tensor, ...], input: Tensor) -> Mapping[str, Tensor]:
    """The gradient by name, by the formula of the module's docstring."""
    shifted, exponentials, total = intermediates(input).values()
    with wide(*forward(input), *cotangents) as (y, g):

        def by_the_logarithm() -> Tensor:
            """What autograd derives of exp(shifted - log(total)): y is computed in two ways, and both are used."""
            product = g * torch.exp(shifted - total.log())
            return product - exponentials / total * product.sum(-1, keepdim=True)

        def by_output() -> Tensor:
            return y * (g - (g * y).sum(-1, keepdim=True))

        # In half types what y was rounded by is more than either does, and all runs should have it.
        d_input = by_output() if of_half() else either(by_output, by_the_logarithm)
    return {"input": stored(d_input, input.dtype)}


_8B = "Meta-Llama-3-8B/config.json"
_MODELS = (
    case("llama-3-8b", {"batch": 2, "features": 128256}, f"{_8B}: vocab_size", "size", "model"),
    case("llama-3-8b-scores", {"batch": 8, "features": 8192}, f"{_8B}: max_position_embeddings", "size", "model"),
    case("large", {"batch": 8192, "features": 8192}, "all scores of one of its heads", "benchmark", "model"),
)
_SAVED = ("exponentials", "largest", "total")


def of_rows(formulas: Formulas, result: Callable[[Tensor], Tensor], claim: str) -> Operator:
    """The contract of an operator on one tensor whose rows are its last dimension, with three forms by its rank.

    `result` gives the output where one element of a row is 0 and the others are -20000, as `claim` says.
    """

    def form(name: str, shape: tuple[str, ...], cases: tuple[Case, ...], forms: tuple[Operator, ...] = ()) -> Operator:
        inputs, elements = (TensorArg("input", shape, any_rank=True),), "*".join(shape)
        return formulas.in_form(
            name,
            inputs,
            outputs=(TensorArg("output", shape),),
            forms=forms,
            autocast=FLOAT32,
            cases=cases,
            families=rowwise.families(inputs, values.changes("input")),
            invariants=(values.dominant(inputs[0], result, claim),),
            refusals=(rowwise.without_dimensions("input"),),
            elementwise=(f"2*{elements}", f"3*{elements}"),
            saved=tuple(TensorArg(each, shape if each == "exponentials" else shape[:-1]) for each in _SAVED),
        )

    tokens = form("tokens", ("batch", "tokens", "features"), rowwise.tokens_cases("features"))
    vector = form("vector", ("features",), rowwise.vector_cases("features"))
    pairs_cases = (
        case("small", {"batch": 3}, "two classes", "size", "small"),
        case("wide", {"batch": 300}, "many rows of two classes", "size"),
    )
    pairs = form("pairs", ("batch", "2"), pairs_cases)
    return form(
        "rows", ("batch", "features"), (*rowwise.matrix_cases("features"), *_MODELS), forms=(tokens, vector, pairs)
    )


OPERATOR = of_rows(
    Formulas("softmax", ("input",), forward, vjp, intermediates),
    lambda input: (input == 0).double(),
    "an element 20000 above all others has the weight 1, and they have 0",
)
