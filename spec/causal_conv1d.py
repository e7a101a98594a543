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

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Invariant, Operator, Refusal, Sizes, TensorArg
from spec.forms import Formulas
from spec.linear_act import activated, smooth_slope
from spec.rounding import stored, wide
from spec.rowwise import Change, Drawn, case, families, non_finite, ordinary, scaled


def windows(sequence: Tensor, width: int, behind: bool = False) -> Tensor:
    """(batch, channels, length, width): what each step sees of the steps up to it, or from it on with `behind`."""
    return F.pad(sequence, (0, width - 1) if behind else (width - 1, 0)).unfold(-1, width, 1)


def pre_activations(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """z, of the shape of the input."""
    with wide(input, weight) as (x, w):
        total = (windows(x, w.shape[1]) * w.unsqueeze(1)).sum(-1)
    total = stored(total, input.dtype)
    return total if bias is None else total + bias.unsqueeze(-1)


def intermediates(input: Tensor, weight: Tensor, bias: Tensor | None = None, **_: object) -> dict[str, Tensor]:
    """The pre-activations."""
    return {"pre_activations": pre_activations(input, weight, bias)}


def forward(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    z = pre_activations(input, weight, bias)
    if activation is None:
        return (z,)
    with wide(z) as (z,):
        output = activated(z, activation)
    return (stored(output, input.dtype),)


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    leaves_open: bool = False,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of the module's docstring; NaN for what it leaves open if that is asked."""
    (d_z,), dtype, width = cotangents, input.dtype, weight.shape[1]
    if activation is not None:
        with wide(pre_activations(input, weight, bias), d_z) as (z, g):
            d_z = g * smooth_slope(z, activation)
        d_z = stored(d_z, dtype)
    with wide(input, weight, d_z) as (x, w, d):
        d_input = (windows(d, width, behind=True) * w.flip(-1).unsqueeze(1)).sum(-1)
        d_weight = (windows(x, width) * d.unsqueeze(-1)).sum((0, 2))
        d_bias = d.sum((0, 2))
    if leaves_open:
        d_weight = d_weight + (input * 0).sum((0, 2)).unsqueeze(-1)
    return {"input": stored(d_input, dtype), "weight": stored(d_weight, dtype), "bias": stored(d_bias, dtype)}


def _taps(drawn: Drawn, draw: Draw) -> None:
    """Each filter has one 1, so each z is one element of the input, or 0 before its first one: nothing is rounded."""
    channels, width = drawn["weight"].shape
    drawn["weight"] = F.one_hot(draw.integers((channels,), 0, width), width).double()
    drawn.update({"bias": drawn["bias"] * 0} if "bias" in drawn else {})


def _chosen(*values: float) -> Change:
    def change(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        _taps(drawn, draw)
        drawn["input"] = draw.choice(tuple(drawn["input"].shape), values)

    return change


def _steady(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["input"] = drawn["input"][..., :1].expand(drawn["input"].shape).clone()
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(drawn["weight"].shape[1])
    drawn["weight"] = drawn["weight"][:, :1] * signs[: drawn["weight"].shape[1]]


def _growing(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["input"] *= torch.logspace(-1, 2, drawn["input"].shape[2], dtype=torch.float64)


_CHANGES: dict[str, tuple[str, Change]] = {
    "steady": ("a constant input whose filter cancels: what is left is the beginning", _steady),
    "growing": ("steps that grow a thousandfold: one that looks ahead sees more than all before it", _growing),
    "large-values": ("sums near the range of float16", scaled("input", 4096.0)),
    "non-finite": non_finite("input"),
}
_OF_SILU: dict[str, tuple[str, Change]] = {
    "turning": ("z about the place where the slope of silu changes its sign", _chosen(-1.288, -1.278, -1.268)),
    "saturated": ("z where silu is its argument, or nothing, and exp overflows", _chosen(-1000.0, -30.0, 0.0, 1000.0)),
}
_UNKNOWN = Refusal(
    "an activation that does not exist",
    "activation",
    lambda function, *tensors: function(*tensors, activation="silou"),
    ("silou", "silu"),
)


def _form(name: str, cases: tuple[Case, ...], *forms: Operator, bias: bool = True, silu: bool = False) -> Operator:
    shape = ("batch", "channels", "length")
    tensors = (TensorArg("input", shape), TensorArg("weight", ("channels", "width"), scale="width**-0.5"))
    inputs = (*tensors, TensorArg("bias", ("channels",), scale="0.5", optional=True)) if bias else tensors
    elements, padded = "*".join(shape), TensorArg("padded", (*shape[:2], "length + width - 1"))

    def delayed(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        _taps(drawn, draw)
        return drawn | {"input": draw.choice(tuple(drawn["input"].shape), (256.0, 512.0))}

    def of_delayed(input: Tensor, weight: Tensor, *_: Tensor) -> dict[str, Tensor]:
        before = weight.shape[1] - 1 - weight.argmax(-1)  # how many steps each channel looks back
        steps = torch.arange(input.shape[2], device=input.device) - before.unsqueeze(-1)
        seen = input.gather(-1, steps.clamp(min=0).expand(input.shape))
        return {"output": torch.where(steps >= 0, seen, torch.zeros_like(seen))}

    def unspecified(tensors: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        named = dict(zip((arg.name for arg in inputs), tensors, strict=True))
        found = vjp(cotangents, **named, activation="silu" if silu else None, leaves_open=True)
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
        families=families(inputs, _CHANGES | (_OF_SILU if silu else {})),
        invariants=(
            Invariant("delayed", "a filter with a single 1 delays its channel", delayed, of_delayed, bitwise=True),
        ),
        refusals=(_UNKNOWN,),
        elementwise=(f"2*{elements}", f"3*{elements}"),
        saved=(padded, *((TensorArg("pre_activations", shape),) if silu else ())),
    )


def _case(name: str, sizes: tuple[int, int, int, int], origin: str, *tags: str) -> Case:
    return case(name, dict(zip(("batch", "channels", "length", "width"), sizes, strict=True)), origin, *tags)


_130M, _2_8B = (f"mamba-{size}-hf/config.json: intermediate_size, conv_kernel" for size in ("130m", "2.8b"))
_FEW = (
    _case("usual", (2, 64, 128, 4), "a small Mamba", "size", "benchmark"),
    _case("small", (2, 3, 7, 4), "fits gradcheck; every size another", "size", "small"),
    _case("square", (3, 3, 3, 3), "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("shorter", (2, 3, 2, 4), "fewer steps than the filter is wide", "size", "small"),
    _case("no-batch", (0, 3, 5, 4), "the last, empty batch of a data loader", "size"),
    _case("length-1025", (1, 2, 1025, 4), "a tail behind a block of 1024", "size"),
)
_TAIL = "tail of a vector, a warp or a block"
_CASES = (
    *_FEW,
    _case("one-step", (3, 5, 1, 4), "a step of decoding", "size"),
    _case("one-channel", (2, 1, 9, 3), "depthwise and dense are the same", "size"),
    *(_case(f"width-{n}", (2, 3, 11, n), "other widths than 4", "size") for n in (1, 2, 3, 5, 9)),
    *(_case(f"length-{n}", (2, 3, n, 4), _TAIL, "size") for n in (4, 8, 9, 31, 33, 127, 129, 513)),
    *(_case(f"channels-{n}", (2, n, 5, 4), "tail of a tile of channels", "size") for n in (31, 33, 65, 129)),
    _case("many-rows", (4099, 2, 1, 2), "thousands of terms in the gradients of weight and bias", "size"),
    _case("batch-70000", (70000, 1, 3, 2), "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("mamba-130m", (1, 1536, 16, 4), _130M, "size", "model"),
    _case("more-than-2^31", (2**18 + 3, 64, 129, 4), "above 2^31 elements", "large"),
    _case("mamba-2.8b", (4, 5120, 2048, 4), f"{_2_8B}, a prompt of 2048", "benchmark", "model"),
)
_OTHERS = (_form("bias", _FEW), _form("no-bias", _FEW, bias=False))
OPERATOR = _form("silu", _CASES, *_OTHERS, silu=True)
