r"""Depthwise causal convolution over a sequence, as in Mamba: each channel has a filter that looks back.

    causal_conv1d(input, weight, bias=None, activation=None) -> act(z)

`input` is (batch, channels, length), the layout of the package causal-conv1d; `weight` is (channels, width), `bias`
(channels,), 0 if it is None; `activation` is None, which returns z, or "silu". With x = 0 before the first step:

    z[b, c, t] = bias[c] + sum over k of weight[c, k] x[b, c, t - (width - 1) + k]
    output     = z, or z s with s = 1 / (1 + exp(-z))

The vector-Jacobian product, with the cotangent g of output and d_z = 0 behind the last step:

    d_z               = g, or g s (1 + z (1 - s))
    d_input[b, c, t]  = sum over k of weight[c, k] d_z[b, c, t + (width - 1) - k]
    d_weight[c, k]    = sum over b and t of d_z[b, c, t] x[b, c, t - (width - 1) + k]
    d_bias[c]         = sum over b and t of d_z[b, c, t]

d_weight is left open for a channel whose input is not finite everywhere: who pads both ends and cuts what is behind the
last step, as Mamba's module does, multiplies the input by 0 there.

Precision. Products add up in float32 for float16 and bfloat16, and in the dtype itself otherwise: float32 is not TF32.
z, and the sum before the bias is added, may be rounded to the dtype, or kept in float32. Activation and slope are
computed in float32; output, d_z and the gradients are rounded once.

Source: A. Gu, T. Dao, "Mamba" (2023); `causal_conv1d_fn` of Dao-AILab/causal-conv1d, without its states and `seq_idx`.
The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from spec.activations import activated, smooth_slope, unknown_activation
from spec.blocks import stored, wide
from spec.contract import LOWER, Operator, TensorArg
from spec.forms import Cases, Formulas, Optional, Tensors
from spec.rowwise import families
from spec.sizes import causal_conv1d as sizes
from spec.values import causal_conv1d as values


def windows(sequence: Tensor, width: int, behind: bool = False) -> Tensor:
    """(batch, channels, length, width): what each step sees of the steps up to it, or from it on with `behind`."""
    return F.pad(sequence, (0, width - 1) if behind else (width - 1, 0)).unfold(-1, width, 1)


def pre_activations(input: Tensor, weight: Tensor, bias: Optional) -> Tensor:
    """z, of the shape of the input."""
    with wide(input, weight) as (x, w):
        total = (windows(x, w.shape[1]) * w.unsqueeze(1)).sum(-1)
    total = stored(total, input.dtype)
    return total if bias is None else total + bias.unsqueeze(-1)


def intermediates(input: Tensor, weight: Tensor, bias: Optional = None, **_: object) -> dict[str, Tensor]:
    """The pre-activations."""
    return {"pre_activations": pre_activations(input, weight, bias)}


def forward(input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    z = pre_activations(input, weight, bias)
    if activation is None:
        return (z,)
    with wide(z) as (z,):
        output = activated(z, activation)
    return (stored(output, input.dtype),)


def vjp(
    cotangents: Tensors, input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None
) -> dict[str, Tensor]:
    """Gradients by name, by the formulas of the module's docstring."""
    (d_z,), dtype, width = cotangents, input.dtype, weight.shape[1]
    if activation is not None:
        with wide(pre_activations(input, weight, bias), d_z) as (z, g):
            d_z = g * smooth_slope(z, activation)
        d_z = stored(d_z, dtype)
    with wide(input, weight, d_z) as (x, w, d):
        d_input = (windows(d, width, behind=True) * w.flip(-1).unsqueeze(1)).sum(-1)
        d_weight = (windows(x, width) * d.unsqueeze(-1)).sum((0, 2))
        d_bias = d.sum((0, 2))
    return {"input": stored(d_input, dtype), "weight": stored(d_weight, dtype), "bias": stored(d_bias, dtype)}


def _form(name: str, cases: Cases, *forms: Operator, bias: bool = True, silu: bool = False) -> Operator:
    shape = ("batch", "channels", "length")
    tensors = (TensorArg("input", shape), TensorArg("weight", ("channels", "width"), scale="width**-0.5"))
    inputs = (*tensors, TensorArg("bias", ("channels",), scale="0.5", optional=True)) if bias else tensors
    elements, padded = "*".join(shape), TensorArg("padded", (*shape[:2], "length + width - 1"))

    def unspecified(tensors: Tensors, cotangents: Tensors) -> Tensors:
        named = dict(zip((arg.name for arg in inputs), tensors, strict=True))
        found = vjp(cotangents, **named, activation="silu" if silu else None)
        found["weight"] = found["weight"] + (named["input"] * 0).sum((0, 2)).unsqueeze(-1)
        return tuple(found[arg.name] for arg in inputs)

    return Formulas("causal_conv1d", ("input", "weight", "bias"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        {"activation": "silu"} if silu else {},
        outputs=(TensorArg("output", shape),),
        unspecified=unspecified,
        autocast=LOWER,
        forms=forms,
        cases=cases,
        families=families(inputs, values.changes(silu)),
        invariants=(values.delayed(inputs),),
        refusals=(unknown_activation("silou", "silu"),),
        elementwise=(f"2*{elements}", f"3*{elements}"),
        saved=(padded, *((TensorArg("pre_activations", shape),) if silu else ())),
    )


_OTHERS = (_form("bias", sizes.FEW), _form("no-bias", sizes.FEW, bias=False))
OPERATOR = _form("silu", sizes.CASES, *_OTHERS, silu=True)
