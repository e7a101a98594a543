r"""MLP: a multilayer perceptron with one hidden layer of rectified linear units.

With batch B, input_features F, hidden_size H, output_size O:

    z            = input @ hidden_weights.T + hidden_bias       (B, H), the pre-activations
    hidden       = relu(z)                                      (B, H), NaN where z is NaN
    output       = hidden @ output_weights.T + output_bias      (B, O)

The vector-Jacobian product. Let g be the cotangent of output. The chain rule, from the output inwards:

    d_output_bias    = g summed over the batch                  (O,)
    d_output_weights = g.T @ hidden                             (O, H)
    d_hidden         = g @ output_weights                       (B, H)
    d_z              = d_hidden where z > 0, 0 elsewhere        (so relu'(0) = 0, as in PyTorch)
    d_hidden_bias    = d_z summed over the batch                (H,)
    d_hidden_weights = d_z.T @ input                            (H, F)
    d_input          = d_z @ hidden_weights                     (B, F)

relu' of a NaN is left open. PyTorch passes d_hidden on, a mask of z > 0 gives 0, a product with the slope gives NaN.
`vjp` does what PyTorch does; `unspecified` marks all that depends on it with NaN.

relu' jumps at 0: if rounding changes the sign of z, d_z changes by all of d_hidden. Rounding z itself keeps its sign.
Rounding the product before the bias is added may change it; rounding parts of the product may change it more often.
Such elements, some in a thousand in bfloat16, need an allowance as wide as the jump, but the 16 runs behind the
allowance miss an element whose chance is small. So the sign is taken from 2 z - z', where z' is z evaluated again. Both
are the same number, but under `spec.rounding` 2 z - z' is up to three times as far from it as one rounding. The
allowance of all other elements does not change.

Source: F. Rosenblatt (1958) and V. Nair and G. Hinton (2010) for the operator. The derivation is ours; `tests/spec`
checks it against autograd, central differences, 50-digit arithmetic and a symbolic derivation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Family, Invariant, Operator, Sizes, TensorArg


def forward(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> tuple[Tensor]:
    """(output,), of shape (batch, output_size)."""
    hidden = intermediates(input, hidden_weights, hidden_bias)["hidden"]
    return (hidden @ output_weights.t() + output_bias,)


def intermediates(input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, *_: Tensor) -> dict[str, Tensor]:
    """The steps of `forward` in order: pre_activations, then hidden, each (batch, hidden_size)."""
    pre_activations = input @ hidden_weights.t() + hidden_bias
    return {"pre_activations": pre_activations, "hidden": F.relu(pre_activations)}


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of the five inputs in their order, by the formulae of the module's docstring."""
    z, hidden = intermediates(*inputs).values()
    (g,) = cotangents
    return _gradients(inputs, g, hidden, _d_z(inputs, z, g @ inputs[3]))


def unspecified(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """`vjp` with NaN for relu' of NaN, and for all that depends on it."""
    z, hidden = intermediates(*inputs).values()
    (g,) = cotangents
    return _gradients(inputs, g, hidden, _d_z(inputs, z, torch.where(z.isnan(), z, g @ inputs[3])))


def _d_z(inputs: tuple[Tensor, ...], z: Tensor, d_hidden: Tensor) -> Tensor:
    again = intermediates(*inputs)["pre_activations"]
    decided = torch.where(z.isfinite(), z + (z - again), z)  # inf - inf would be NaN
    return torch.where(decided <= 0, torch.zeros_like(d_hidden), d_hidden)


def _gradients(inputs: tuple[Tensor, ...], g: Tensor, hidden: Tensor, d_z: Tensor) -> tuple[Tensor, ...]:
    input, hidden_weights, *_ = inputs
    return d_z @ hidden_weights, d_z.t() @ input, d_z.sum(0), g.t() @ hidden, g.sum(0)


def _solved_for(pre_activations: Tensor, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Inputs whose pre-activations are exactly the rows of `pre_activations`, (input_features, hidden_size).

    Row b of the input is the unit vector b modulo its length, so each product has one term and no rounding. Row b of
    the batch then gets row b (modulo the number of rows) of `pre_activations`.
    """
    batch, features = sizes["batch"], sizes["input_features"]
    input = torch.eye(features, dtype=torch.float64).repeat(-(-batch // max(features, 1)), 1)[:batch]
    return {
        **OPERATOR.ordinary(sizes, draw),
        "input": input.reshape(batch, features),
        "hidden_weights": pre_activations.t().contiguous(),
        "hidden_bias": torch.zeros(sizes["hidden_size"], dtype=torch.float64),
    }


def _chosen(values: tuple[float, ...], sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    return _solved_for(draw.choice((sizes["input_features"], sizes["hidden_size"]), values), sizes, draw)


def _zero_pre_activations(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _chosen((0.0,), sizes, draw)


def _tiny_pre_activations(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    return _chosen((-eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0, -0.0), sizes, draw)


def _denormals(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    quarter = torch.finfo(dtype).tiny / 4
    tensors["input"] = draw.choice((sizes["batch"], sizes["input_features"]), (quarter, -quarter, 1.0))
    tensors["hidden_bias"] = draw.choice((sizes["hidden_size"],), (quarter, -quarter, 0.0))
    return tensors


def _huge_hidden(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    # A product with weights of order 1 must not overflow, and in float64 its square, which the allowance needs.
    huge = min(torch.finfo(dtype).max / 32, 2.0**500)
    return _chosen((huge, -huge, huge / 2, 1.0), sizes, draw)


def _biased_by(bias: float, units: slice, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Ordinary inputs with `bias` as the bias of the hidden units `units`; products are of order 1 beside it."""
    tensors = OPERATOR.ordinary(sizes, draw)
    tensors["hidden_bias"][units] = bias
    return tensors


def _dead_units(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _biased_by(-100.0, slice(None, None, 2), sizes, draw)


def _dead_layer(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _biased_by(-100.0, slice(None), sizes, draw)


def _live_layer(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _biased_by(16.0, slice(None), sizes, draw)


def _non_finite(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    """NaN, +inf and -inf in the first rows of the input; all other rows stay ordinary.

    In bfloat16 there is no -inf: a product may multiply the tail of a row by 0 in the next one, see `spec.lltm`.
    """
    tensors = OPERATOR.ordinary(sizes, draw)
    features = sizes["input_features"]
    for row, value in zip(range(sizes["batch"]), (float("nan"), float("inf"), -float("inf")), strict=False):
        if features and not (dtype == torch.bfloat16 and value == -float("inf")):
            tensors["input"][row, row % features] = value
    return tensors


def _zero_hidden_parameters(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    tensors = OPERATOR.ordinary(sizes, draw)
    return {**tensors, **{name: torch.zeros_like(tensors[name]) for name in ("hidden_weights", "hidden_bias")}}


def _output_bias_alone(*inputs: Tensor) -> dict[str, Tensor]:
    return {"output": inputs[4].expand(len(inputs[0]), -1)}


def _affine(*inputs: Tensor) -> dict[str, Tensor]:
    input, hidden_weights, hidden_bias, output_weights, output_bias = inputs
    return {"output": input @ (output_weights @ hidden_weights).t() + (output_weights @ hidden_bias + output_bias)}


def _case(name: str, batch: int, features: int, hidden: int, outputs: int, origin: str, *tags: str) -> Case:
    sizes = {"batch": batch, "input_features": features, "hidden_size": hidden, "output_size": outputs}
    return Case(name, sizes, origin, frozenset(tags))


_TAIL_HIDDEN = (3, 4, 5, 7, 9, 31, 32, 33, 255, 256, 257, 1025)
_BLOCK_HIDDEN = (1023, 1024)

OPERATOR = Operator(
    name="mlp",
    inputs=(
        TensorArg("input", ("batch", "input_features")),
        TensorArg("hidden_weights", ("hidden_size", "input_features"), scale="(input_features + 1)**-0.5"),
        TensorArg("hidden_bias", ("hidden_size",), scale="0.5"),
        TensorArg("output_weights", ("output_size", "hidden_size"), scale="(hidden_size + 1)**-0.5"),
        TensorArg("output_bias", ("output_size",), scale="0.5"),
    ),
    outputs=(TensorArg("output", ("batch", "output_size")),),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    unspecified=unspecified,
    intermediates=intermediates,
    flops=("2*batch*hidden_size*(input_features + output_size)", "4*batch*hidden_size*(input_features + output_size)"),
    cases=(
        _case("digits", 16, 64, 128, 10, "images of 8x8, ten classes", "size", "benchmark"),
        _case("middle", 64, 784, 512, 10, "images of 28x28, as in PyTorch's quickstart", "benchmark"),
        _case("large", 4096, 1024, 4096, 1024, "a transformer's block: products that fill a GPU", "benchmark"),
        _case(
            "small", 3, 4, 5, 2, "fits gradcheck; every size another, odd or below the vector width", "size", "small"
        ),
        _case("square", 4, 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
        _case("one-row", 1, 3, 8, 2, "batch 1", "size", "small"),
        _case("one-everything", 1, 1, 1, 1, "the least that is not empty", "size", "small"),
        _case("no-features", 3, 0, 6, 2, "an input of width 0: the hidden bias alone", "size", "small"),
        _case("no-hidden", 3, 4, 0, 2, "no hidden unit: the output bias alone", "size"),
        _case("no-outputs", 3, 4, 5, 0, "an output of width 0", "size"),
        _case("no-rows", 0, 3, 4, 2, "the last, empty batch of a data loader", "size"),
        _case("no-rows-no-features", 0, 0, 4, 2, "both empty", "size"),
        *(
            _case(f"hidden-{size}", 3, 5, size, 2, "tail of a vector, a warp or a block", "size")
            for size in _TAIL_HIDDEN
        ),
        *(
            _case(f"hidden-{size}", 3, 5, size, 2, "around the largest block", "size", "block")
            for size in _BLOCK_HIDDEN
        ),
        _case("batch-70000", 70000, 2, 3, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
        _case("more-than-2^31", 2**20 + 3, 2, 2100, 2, "batch*hidden_size above 2^31 elements", "large"),
    ),
    families=(
        Family(
            "zero-pre-activations", "every pre-activation exactly 0, where relu has its kink", _zero_pre_activations
        ),
        Family("tiny-pre-activations", "of -eps/8, smallest normals, negative zero", _tiny_pre_activations),
        Family("denormals", "inputs below the smallest normal number", _denormals),
        Family("huge-hidden", "hidden values near the overflow of the dtype", _huge_hidden),
        Family("dead-units", "every other hidden unit negative for all rows", _dead_units),
        Family("dead-layer", "every hidden unit negative for all rows", _dead_layer),
        Family("non-finite", "inf and NaN in three rows, which must stay in their rows", _non_finite),
    ),
    invariants=(
        Invariant(
            "dead-hidden-layer",
            "a hidden layer that is negative throughout gives the output bias",
            _dead_layer,
            _output_bias_alone,
            bitwise=True,
        ),
        Invariant(
            "zero-hidden-parameters",
            "zero hidden weights and bias give the output bias",
            _zero_hidden_parameters,
            _output_bias_alone,
            bitwise=True,
        ),
        Invariant(
            "live-hidden-layer",
            "a hidden layer that is positive throughout makes the operator affine",
            _live_layer,
            _affine,
        ),
    ),
    saved=(TensorArg("hidden", ("batch", "hidden_size")),),
)
