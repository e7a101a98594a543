r"""bias_gelu: the Gaussian error linear unit of a biased input.

    z      = input + bias                                       (batch, features)
    output = z Phi(z),  Phi(z) = (1 + erf(z / sqrt(2))) / 2     (batch, features)

The vector-Jacobian product. Let g be the cotangent of output, and phi the density exp(-z^2/2) / sqrt(2 pi):

    d_input = g (Phi(z) + z phi(z))                             (batch, features)
    d_bias  = d_input summed over the batch                     (features,)

Source: D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units" (2016).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from spec.contract import Case, Draw, Family, Invariant, Operator, Sizes, TensorArg


def forward(input: Tensor, bias: Tensor) -> tuple[Tensor]:
    """(output,), of shape (batch, features)."""
    z = input + bias
    return (z * _cdf(z),)


def intermediates(input: Tensor, bias: Tensor) -> dict[str, Tensor]:
    """z, then Phi(z), each (batch, features)."""
    z = input + bias
    return {"z": z, "Phi": _cdf(z)}


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of input and bias, by the formulae of the module's docstring."""
    z = inputs[0] + inputs[1]
    (g,) = cotangents
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    d_input = g * (_cdf(z) + z * density)
    return d_input, d_input.sum(0)


def _cdf(z: Tensor) -> Tensor:
    # With erf, as in most kernels: it cancels for very negative z, and the allowance then takes this into account.
    return (1 + torch.erf(z / math.sqrt(2))) / 2


def _zero(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return {**OPERATOR.ordinary(sizes, draw), "input": torch.zeros(sizes["batch"], sizes["features"]).double()}


def _large(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    return {**tensors, "input": draw.choice((sizes["batch"], sizes["features"]), (40.0, -40.0, 1.0))}


def _saturated(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    input = torch.full((sizes["batch"], sizes["features"]), 64.0, dtype=torch.float64)
    return {"input": input, "bias": torch.zeros(sizes["features"], dtype=torch.float64)}


def _case(name: str, batch: int, features: int, origin: str, *tags: str) -> Case:
    return Case(name, {"batch": batch, "features": features}, origin, frozenset(tags))


OPERATOR = Operator(
    name="bias_gelu",
    inputs=(TensorArg("input", ("batch", "features")), TensorArg("bias", ("features",), scale="0.5")),
    outputs=(TensorArg("output", ("batch", "features")),),
    forward=forward,
    vjp=vjp,
    intermediates=intermediates,
    cases=(
        _case("bert-base", 128, 3072, "the hidden layer of BERT base, a sentence of 128 tokens", "benchmark"),
        _case("small", 3, 5, "fits gradcheck; both sizes prime to the vector width", "size", "small"),
        _case("one-row", 1, 4, "batch 1", "size", "small"),
        _case("no-rows", 0, 4, "the last, empty batch of a data loader", "size"),
        _case("tail", 3, 1025, "tail of a block", "size"),
    ),
    families=(
        Family("zero-input", "z is the bias alone", _zero),
        Family("large-input", "values where Phi is 0 or 1 to the last bit", _large),
    ),
    invariants=(
        Invariant(
            "saturated",
            "for large z, gelu is the identity",
            _saturated,
            lambda input, bias: {"output": input + bias},
            bitwise=True,
        ),
    ),
)
