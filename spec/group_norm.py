r"""GroupNorm: the channels of each sample in groups, each group normalised to mean 0 and variance 1, as in PyTorch.

    group_norm(input, num_groups, weight=None, bias=None, eps=1e-5) -> output

`input` is (batch, channels, ...) with any number of further dimensions. `num_groups` divides channels: group k has the
channels from k channels/num_groups on. For a group x of one sample, of N elements over its channels and all further
dimensions, and with w and b the elements of weight and bias for their channel (1 and 0 if they are None):

    mean     = sum(x) / N
    variance = sum((x - mean)^2) / N
    rstd     = (variance + eps)^(-1/2)
    xhat     = (x - mean) rstd
    output   = xhat w + b

The vector-Jacobian product. Let g be the cotangent of output and h = g w that of xhat. With sums over the group:

    d_input  = rstd (h - sum(h)/N - xhat sum(h xhat)/N)
    d_weight = g xhat, summed over the batch and all further dimensions
    d_bias   = g, summed over the batch and all further dimensions

Precision. That of `spec.layer_norm`, whose rows are the groups: statistics, xhat and the bracket of d_input are
computed in float32 for float16 and bfloat16, and the variance comes from two passes or from Welford's update.

Kernels compute output as x a + (b - mean a) with a = rstd w, one product and one sum for each element. The sum
b - mean a rounds b to a multiple of the last place of mean a. While |mean a| stays between the same two powers of 2,
the error is always the distance of b from such a multiple. So it has one sign for all groups of a channel, and for
channels of equal b. It is up to u |mean a|, and no number of elements averages it away. Where groups have one element,
xhat is 0, and this error is all there is.

Source: Y. Wu, K. He, "Group Normalization" (2018); torch.nn.functional.group_norm. The derivation is that of
`spec.layer_norm`; `tests/spec` checks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from spec.contract import FLOAT32, Case, Draw, Invariant, Operator, Refusal, Sizes, TensorArg
from spec.forms import Formulas
from spec.layer_norm import normalised
from spec.rounding import one_rounding, stored, wide
from spec.rowwise import Change, Drawn, case, families, ordinary, scaled

#: The default of PyTorch's signature.
EPS = 1e-5


def grouped(tensor: Tensor, num_groups: int) -> Tensor:
    """(batch, num_groups, elements of a group)."""
    return tensor.reshape(tensor.shape[0], num_groups, math.prod(tensor.shape[1:]) // num_groups)


def per_channel(vector: Tensor, like: Tensor) -> Tensor:
    """(channels,) as (channels, 1, ...), which meets the second dimension of `like`."""
    return vector.reshape(-1, *(1 for _ in like.shape[2:]))


def over_channels(tensor: Tensor) -> Tensor:
    """The sum over all but the second dimension."""
    return tensor.sum((0, *range(2, tensor.dim())))


def forward(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = EPS
) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    groups = grouped(input, num_groups)
    xhat, rstd = normalised(groups, (-1,), eps)
    output = stored(xhat, input.dtype).view(input.shape)
    output = output if weight is None else output * per_channel(weight, input)
    if bias is None:
        return (output,)
    shifted = per_channel(bias, input) + _lost(groups, rstd, weight, bias, input).to(input.dtype)
    return (output + shifted,)


def _lost(groups: Tensor, rstd: Tensor, weight: Tensor | None, bias: Tensor, like: Tensor) -> Tensor:
    """0; under rounding, what the sum b - mean a loses of b: up to u |mean a|, of one sign where biases are equal."""
    with wide(*(tensor.detach() for tensor in (groups, rstd, bias))) as (x, r, b):
        shift = (x.mean(-1, keepdim=True) * r).expand_as(x).reshape(like.shape)
        size = (shift if weight is None else shift * per_channel(weight.detach(), like)).abs()
        return size * per_channel(one_rounding(torch.ones_like(b), beside=b), like)


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = EPS,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    del bias
    (g,) = cotangents
    xhat, rstd = normalised(grouped(input, num_groups), (-1,), eps)
    with wide(g, grouped(g if weight is None else g * per_channel(weight, input), num_groups)) as (wide_g, h):
        difference = h - h.mean(-1, keepdim=True) - xhat * (h * xhat).mean(-1, keepdim=True)
    d_weight = over_channels(wide_g * stored(xhat, input.dtype).view(input.shape))
    d_input = (rstd * difference).to(input.dtype).view(input.shape)
    return {"input": d_input, "weight": d_weight.to(input.dtype), "bias": over_channels(g)}


def intermediates(input: Tensor, num_groups: int, eps: float = EPS, **_: Tensor) -> dict[str, Tensor]:
    """rstd, (batch, num_groups, 1), then xhat, (batch, num_groups, elements of a group)."""
    xhat, rstd = normalised(grouped(input, num_groups), (-1,), eps)
    return {"rstd": rstd, "xhat": xhat}


def _changes(num_groups: int, eps: float) -> dict[str, tuple[str, Change]]:
    def on_groups(change: Callable[[Tensor, torch.dtype], Tensor]) -> Change:
        def changed(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
            drawn["input"] = change(grouped(drawn["input"], num_groups), dtype).view(drawn["input"].shape)

        return changed

    def large_mean(groups: Tensor, dtype: torch.dtype) -> Tensor:
        # In turn 1 above and 1 below the mean, so that no group is nearly constant by chance: see `spec.layer_norm`.
        sides = 1.0 - 2.0 * (torch.arange(groups.shape[-1]) % 2)
        return groups / 4 + sides + 4 / math.sqrt(torch.finfo(dtype).eps)

    def constant(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        # Multiples of 1/16, whose mean is exact.
        groups[:, ::2] = (groups[:, ::2, :1] * 16).round() / 16
        return groups

    def steps(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        return groups + 8.0 * torch.arange(num_groups).unsqueeze(-1)

    def non_finite(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        for sample, value in zip(range(len(groups)), (math.nan, math.inf, -math.inf), strict=False):
            groups[sample, sample % num_groups, sample % groups.shape[-1]] = value
        return groups

    return {
        "large-mean": ("a mean far above the standard deviation, where E[x^2] - mean^2 cancels", on_groups(large_mean)),
        "constant-groups": ("groups of variance 0, where eps is all there is", on_groups(constant)),
        "steps": ("a mean that grows from group to group", on_groups(steps)),
        "small-variance": ("a variance of the size of eps", scaled("input", math.sqrt(eps))),
        "large-values": ("values whose squares overflow float16", scaled("input", 4096.0)),
        "non-finite": ("inf and NaN in three groups, which must stay in their groups", on_groups(non_finite)),
    }


def _refusals(num_groups: int) -> tuple[Refusal, ...]:
    def with_groups(wrong: Callable[[int], int]) -> Callable[..., Any]:
        return lambda function, input, *affine: function(input, wrong(input.shape[1]), *affine)

    return (
        Refusal("num_groups that does not divide the channels", "num_groups", with_groups(lambda c: c - 1), (r"\d",)),
        Refusal("num_groups of 0", "num_groups", with_groups(lambda _: 0), ("0",)),
        Refusal("input of one dimension", "input", lambda function, input, *_: function(input.flatten(), num_groups)),
    )


def _form(
    name: str,
    num_groups: int,
    further: tuple[str, ...],
    names: tuple[str, ...],
    cases: tuple[Case, ...],
    eps: float = EPS,
    forms: tuple[Operator, ...] = (),
) -> Operator:
    channels = f"{num_groups}*depth" if num_groups > 1 else "depth"
    shape, elements = ("batch", channels, *further), "*".join(("batch", channels, *further))
    affine = (TensorArg(each, (channels,), optional=True) for each in names)
    inputs = (TensorArg("input", shape, any_rank=True), *affine)

    def two_values(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        groups = grouped(drawn["input"], num_groups)
        groups[:] = 2.0
        groups[..., 0 : groups.shape[-1] // 2 * 2 : 2] = 3.0
        groups[..., 1::2] = 1.0
        return drawn

    def plus_and_minus(input: Tensor, *affine: Tensor) -> dict[str, Tensor]:
        count = grouped(input, num_groups).shape[-1]
        share = (count // 2 * 2) / max(count, 1)  # in a group of odd length, one element is the mean
        output = (input - 2.0) / math.sqrt(share + eps)
        named = {each: per_channel(tensor, input) for each, tensor in zip(names, affine, strict=True)}
        return {"output": output * named.get("weight", torch.ones(())) + named.get("bias", torch.zeros(()))}

    def zero_weight(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        return drawn | {"weight": torch.zeros_like(drawn["weight"])}

    def bias_alone(input: Tensor, _weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
        return {"output": per_channel(bias, input).expand_as(input)}

    claim = "groups of 3 and 1 in turn are normalised to +-1/sqrt(1 + eps)"
    invariants = [Invariant("two-values", claim, two_values, plus_and_minus)]
    if "bias" in names:
        claim = "a weight of 0 leaves the bias"
        invariants.append(Invariant("zero-weight", claim, zero_weight, bias_alone, bitwise=True))

    kept = ("deviation", "centred", *(("xhat",) if "weight" in names else ()))
    law = Formulas("group_norm", ("input", "num_groups", "weight", "bias"), forward, vjp, intermediates)
    return law.in_form(
        name,
        inputs,
        {"num_groups": num_groups} | ({} if eps == EPS else {"eps": eps}),
        outputs=(TensorArg("output", shape),),
        autocast=FLOAT32,
        forms=forms,
        cases=cases,
        families=families(inputs, _changes(num_groups, eps)),
        invariants=tuple(invariants),
        refusals=_refusals(num_groups),
        elementwise=(f"2*{elements}", f"3*{elements}"),
        saved=(
            *(TensorArg(each, shape) for each in kept),
            *(TensorArg(each, ("batch", str(num_groups))) for each in ("mean", "rstd")),
        ),
    )


def _image(name: str, batch: int, depth: int, height: int, width: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "depth": depth, "height": height, "width": width}, origin, *tags)


def _sequence(name: str, batch: int, depth: int, length: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "depth": depth, "length": length}, origin, *tags)


_IMAGES = (
    _image("feature-map", 2, 16, 16, 16, "a small convolutional network", "size", "benchmark"),
    _image("small", 3, 2, 2, 5, "fits gradcheck", "size", "small"),
    _image("square", 4, 2, 4, 4, "all dimensions equal, so that an exchanged index fits", "size", "small"),
    _image("one-channel", 2, 1, 2, 3, "groups of one channel, as in InstanceNorm", "size", "small"),
    _image("one-element", 3, 1, 1, 1, "groups of one element: their variance is 0", "size"),
    _image("no-rows", 0, 2, 2, 3, "the last, empty batch of a data loader", "size"),
    *(
        _image(f"width-{n}", 2, 2, 3, n, "tail of a vector, a warp or a block", "size")
        for n in (7, 8, 31, 33, 257, 1025)
    ),
    *(_image(f"depth-{n}", 2, n, 2, 3, "tail of a block of channels", "size") for n in (5, 16, 33, 129)),
    _image("batch-70000", 70000, 1, 1, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _image("more-than-2^31", 2**18 + 3, 32, 12, 11, "above 2^31 elements", "large"),
    _image("large", 16, 160, 64, 64, "more than the caches hold", "benchmark"),
)
_SD = "stable-diffusion-v1-5/unet/config.json: norm_num_groups 32, block_out_channels"
_DIFFUSION = (
    _sequence("small", 2, 1, 3, "32 groups of one channel", "size", "small"),
    _sequence("wide", 2, 2, 129, "a tail behind a block of 256", "size"),
    _sequence("sd-1.5-lowest", 2, 40, 64, f"{_SD} 1280, of 8x8 pixels", "size", "model"),
    _sequence("sd-1.5-highest", 2, 10, 4096, f"{_SD} 320, of 64x64 pixels", "model"),
)
_SOUND = (
    _sequence("small", 2, 2, 5, "rank 3, a number of groups that is no power of 2", "size", "small"),
    _sequence("wide", 2, 5, 61, "a tail behind a block of 256", "size"),
)
_VECTORS = (
    case("small", {"batch": 3, "depth": 5}, "rank 2, one group", "size", "small"),
    case("wide", {"batch": 3, "depth": 1030}, "a group longer than a block", "size"),
)
OPERATOR = _form(
    "images",
    2,
    ("height", "width"),
    ("weight", "bias"),
    _IMAGES,
    forms=(
        _form("32-groups", 32, ("length",), ("weight", "bias"), _DIFFUSION, eps=1e-6),
        _form("no-affine", 3, ("length",), (), _SOUND, eps=0.5),
        _form("weight-only", 1, (), ("weight",), _VECTORS),
    ),
)
