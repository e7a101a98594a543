r"""linear_act: a linear layer and its activation, which kernels compute in one pass (an epilogue of the product).

    linear_act(input, weight, bias=None, activation="relu") -> act(input @ weight.T + bias)

`input` is (batch, in_features), `weight` (out_features, in_features), `bias` (out_features,), 0 if it is None. With
Phi and phi the distribution function and the density of the normal distribution, and s = 1 / (1 + exp(-z)):

    z      = input @ weight.T + bias                            (batch, out_features), the pre-activations
    output = act(z)
    relu:    max(z, 0), NaN where z is NaN                      slope 1 where z > 0, 0 elsewhere (so 0 at 0)
    gelu:    z Phi(z), not approximated by tanh                 slope Phi(z) + z phi(z)
    silu:    z s                                                slope s (1 + z (1 - s))

The vector-Jacobian product, with the cotangent g of output:

    d_z      = g slope(z)
    d_input  = d_z @ weight
    d_weight = d_z.T @ input
    d_bias   = d_z summed over the batch

relu' of a NaN is left open, as in `spec.mlp`; `spec.activations` says how the sign of z is taken. At an infinite z the
smooth activations and their slopes are what the formulas give, NaN where they are inf * 0, as in PyTorch.

Precision. Products add up in float32 for float16 and bfloat16. z, and the product before the bias is added, may be
rounded to the dtype, or kept in float32. Activation and slope are computed in float32; output and d_z are rounded once.

Source: PyTorch's F.linear, F.relu, F.gelu and F.silu; D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units" (2016).
The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from spec.activations import activated, smooth_slope, through_relu, unknown_activation
from spec.blocks import stored, wide
from spec.contract import LOWER, Operator, TensorArg
from spec.forms import Cases, Formulas, Optional, Tensors
from spec.rowwise import families
from spec.sizes import linear_act as sizes
from spec.values import linear_act as values

_Z = "pre_activations"
_SAVED = {"relu": ("activated",), "gelu": (_Z, "argument_of_erf", "distribution"), "silu": (_Z,)}


def pre_activations(input: Tensor, weight: Tensor, bias: Optional) -> Tensor:
    """z, (batch, out_features)."""
    product = input @ weight.t()
    return product if bias is None else product + bias


def intermediates(input: Tensor, weight: Tensor, bias: Optional = None, **_: str) -> dict[str, Tensor]:
    """The pre-activations."""
    return {"pre_activations": pre_activations(input, weight, bias)}


def forward(input: Tensor, weight: Tensor, bias: Optional = None, activation: str = "relu") -> tuple[Tensor]:
    """(output,), of shape (batch, out_features)."""
    with wide(pre_activations(input, weight, bias)) as (z,):
        output = activated(z, activation)
    return (stored(output, input.dtype),)


def vjp(
    cotangents: Tensors,
    input: Tensor,
    weight: Tensor,
    bias: Optional = None,
    activation: str = "relu",
    nan: bool = False,
) -> Mapping[str, Tensor]:
    """Gradients by name; `nan`: NaN for relu' of NaN, and for all that depends on it."""
    (g,) = cotangents
    z = pre_activations(input, weight, bias)
    if activation == "relu":
        g = g.masked_fill(z.isnan(), float("nan")) if nan else g
        d_z = through_relu(g, z, pre_activations(input, weight, bias))
    else:
        with wide(z, g) as (z, g):
            d_z = g * smooth_slope(z, activation)
        d_z = stored(d_z, input.dtype)
    return {"input": d_z @ weight, "weight": d_z.t() @ input, "bias": d_z.sum(0)}


def _form(activation: str, cases: Cases, *forms: Operator, bias: bool = True) -> Operator:
    tensors = (
        TensorArg("input", ("batch", "in_features")),
        TensorArg("weight", ("out_features", "in_features"), scale="(in_features + 1)**-0.5"),
        TensorArg("bias", ("out_features",), scale="0.5", optional=True),
    )
    inputs = tensors if bias else tensors[:2]

    def unspecified(tensors: Tensors, cotangents: Tensors) -> Tensors:
        named = dict(zip((arg.name for arg in inputs), tensors, strict=True))
        found = vjp(cotangents, **named, activation=activation, nan=True)
        return tuple(found[name] for name in named)

    product = "batch*out_features*in_features"
    return Formulas("linear_act", ("input", "weight", "bias"), forward, vjp, intermediates).in_form(
        activation,
        inputs,
        {} if activation == "relu" else {"activation": activation},
        outputs=(TensorArg("output", ("batch", "out_features")),),
        unspecified=unspecified,
        autocast=LOWER,
        forms=forms,
        cases=cases,
        families=families(inputs, values.changes(activation)),
        invariants=(values.unit_vectors(inputs, activation),),
        refusals=(unknown_activation("tanhh", "relu"),),
        flops=(f"2*{product}", f"4*{product}"),
        elementwise=("2*batch*out_features", "3*batch*out_features"),
        saved=tuple(TensorArg(each, ("batch", "out_features")) for each in _SAVED[activation]),
    )


OPERATOR = _form("relu", sizes.CASES, _form("gelu", sizes.GELU), _form("silu", sizes.SILU, bias=False))
