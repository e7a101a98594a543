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
computed in float32 for float16 and bfloat16, and the variance comes from two passes or from Welford's update. What the
sum with the bias loses is in `spec.channels.lost_of_bias`, and what the gradient of the weight loses in
`lost_of_weight` there.

Source: Y. Wu, K. He, "Group Normalization" (2018); torch.nn.functional.group_norm. The derivation is that of
`spec.layer_norm`; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from spec.blocks import stored, wide
from spec.channels import grouped, lost_of_bias, lost_of_weight, over_channels, per_channel, refusals
from spec.contract import FLOAT32, Operator, TensorArg
from spec.forms import Cases, Formulas, Optional, Shape, Tensors
from spec.normalized import normalised
from spec.rowwise import families
from spec.sizes import group_norm as sizes
from spec.values import group_norm as values

#: The default of PyTorch's signature.
EPS = 1e-5


def forward(
    input: Tensor, num_groups: int, weight: Optional = None, bias: Optional = None, eps: float = EPS
) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    groups = grouped(input, num_groups)
    xhat, rstd = normalised(groups, (-1,), eps)
    output = stored(xhat, input.dtype).view(input.shape)
    output = output if weight is None else output * per_channel(weight, input)
    if bias is None:
        return (output,)
    shifted = per_channel(bias, input) + lost_of_bias(groups, rstd, weight, bias, input).to(input.dtype)
    return (output + shifted,)


def vjp(
    cotangents: Tensors, input: Tensor, num_groups: int, weight: Optional = None, eps: float = EPS, **_: Tensor
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    (g,) = cotangents
    xhat, rstd = normalised(grouped(input, num_groups), (-1,), eps)
    with wide(g, grouped(g if weight is None else g * per_channel(weight, input), num_groups)) as (wide_g, h):
        difference = h - h.mean(-1, keepdim=True) - xhat * (h * xhat).mean(-1, keepdim=True)
    d_weight = over_channels(wide_g * stored(xhat, input.dtype).view(input.shape))
    d_weight = d_weight + lost_of_weight(g, input, xhat, rstd)
    d_input = (rstd * difference).to(input.dtype).view(input.shape)
    return {"input": d_input, "weight": d_weight.to(input.dtype), "bias": over_channels(g)}


def intermediates(input: Tensor, num_groups: int, eps: float = EPS, **_: Tensor) -> dict[str, Tensor]:
    """rstd, (batch, num_groups, 1), then xhat, (batch, num_groups, elements of a group)."""
    xhat, rstd = normalised(grouped(input, num_groups), (-1,), eps)
    return {"rstd": rstd, "xhat": xhat}


def _form(
    name: str, num_groups: int, further: Shape, names: Shape, cases: Cases, *forms: Operator, eps: float = EPS
) -> Operator:
    channels = f"{num_groups}*depth" if num_groups > 1 else "depth"
    shape, elements = ("batch", channels, *further), "*".join(("batch", channels, *further))
    affine = (TensorArg(each, (channels,), optional=True) for each in names)
    inputs = (TensorArg("input", shape, any_rank=True), *affine)
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
        families=families(inputs, values.changes(num_groups, eps)),
        invariants=values.invariants(inputs, num_groups, eps),
        refusals=refusals(num_groups),
        elementwise=(f"2*{elements}", f"3*{elements}"),
        saved=(
            *(TensorArg(each, shape) for each in kept),
            *(TensorArg(each, ("batch", str(num_groups))) for each in ("mean", "rstd")),
        ),
    )


OPERATOR = _form(
    "images",
    2,
    ("height", "width"),
    ("weight", "bias"),
    sizes.IMAGES,
    _form("32-groups", 32, ("length",), ("weight", "bias"), sizes.DIFFUSION, eps=1e-6),
    _form("no-affine", 3, ("length",), (), sizes.SOUND, eps=0.5),
    _form("weight-only", 1, (), ("weight",), sizes.VECTORS),
)
