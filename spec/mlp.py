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

relu' jumps at 0. `spec.activations.through_relu` says how the sign of z is taken.

Source: F. Rosenblatt (1958) and V. Nair and G. Hinton (2010) for the operator. The derivation is ours; `tests/spec`
checks it against autograd, central differences, 50-digit arithmetic and a symbolic derivation.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.activations import through_relu
from spec.contract import LOWER, Operator, TensorArg
from spec.forms import Tensors
from spec.sizes import mlp as sizes
from spec.values import mlp as values


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


def vjp(inputs: Tensors, cotangents: Tensors) -> Tensors:
    """Gradients of the five inputs in their order, by the formulae of the module's docstring."""
    z, hidden = intermediates(*inputs).values()
    (g,) = cotangents
    return _gradients(inputs, g, hidden, _d_z(inputs, z, g @ inputs[3]))


def unspecified(inputs: Tensors, cotangents: Tensors) -> Tensors:
    """`vjp` with NaN for relu' of NaN, and for all that depends on it."""
    z, hidden = intermediates(*inputs).values()
    (g,) = cotangents
    return _gradients(inputs, g, hidden, _d_z(inputs, z, torch.where(z.isnan(), z, g @ inputs[3])))


def _d_z(inputs: Tensors, z: Tensor, d_hidden: Tensor) -> Tensor:
    return through_relu(d_hidden, z, intermediates(*inputs)["pre_activations"])


def _gradients(inputs: Tensors, g: Tensor, hidden: Tensor, d_z: Tensor) -> Tensors:
    input, hidden_weights, *_ = inputs
    return d_z @ hidden_weights, d_z.t() @ input, d_z.sum(0), g.t() @ hidden, g.sum(0)


_INPUTS = (
    TensorArg("input", ("batch", "input_features")),
    TensorArg("hidden_weights", ("hidden_size", "input_features"), scale="(input_features + 1)**-0.5"),
    TensorArg("hidden_bias", ("hidden_size",), scale="0.5"),
    TensorArg("output_weights", ("output_size", "hidden_size"), scale="(hidden_size + 1)**-0.5"),
    TensorArg("output_bias", ("output_size",), scale="0.5"),
)
OPERATOR = Operator(
    name="mlp",
    inputs=_INPUTS,
    outputs=(TensorArg("output", ("batch", "output_size")),),
    autocast=LOWER,
    forward=forward,
    vjp=vjp,
    unspecified=unspecified,
    intermediates=intermediates,
    flops=("2*batch*hidden_size*(input_features + output_size)", "4*batch*hidden_size*(input_features + output_size)"),
    cases=sizes.CASES,
    families=values.families(_INPUTS),
    invariants=values.invariants(_INPUTS),
    saved=(TensorArg("hidden", ("batch", "hidden_size")),),
)
