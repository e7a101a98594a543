r"""RMSNorm: each row divided by the root of its mean square, then scaled. A residual may be added first.

    rms_norm(input, weight=None, residual=None, eps=1e-6) -> output, or (output, total) if a residual is passed

The last dimension of `input` is a row of N elements; the dimensions before it, any number or none, count the rows.
`weight`, of shape (N,), is 1 if it is None; `residual` has the shape of `input`. For a row, with sums over it:

    total  = input + residual                      the new residual; without one, the input
    rstd   = (sum(total^2) / N + eps)^(-1/2)
    xhat   = total rstd
    output = xhat w

The vector-Jacobian product. Let g be the cotangent of output, r that of total, and h = g w that of xhat. With
d rstd/d total_i = -rstd^3 total_i / N, the chain rule gives:

    d_input = d_residual = rstd (h - xhat sum(h xhat)/N) + r
    d_weight             = g xhat, summed over all rows

Precision. For float16 and bfloat16, the mean square, rstd, xhat and the bracket are computed in float32; for the other
dtypes, in the dtype itself. total, xhat and h may be rounded to the dtype. The last operations are rounded to it:
xhat w, g xhat, the product with rstd, the sum with r, and the sums over rows.

Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization" (2019). The derivation is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import FLOAT32, Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.rounding import stored, wide
from spec.rowwise import (
    Drawn,
    as_rows,
    case,
    families,
    few_cases,
    matrix_cases,
    non_finite,
    ordinary,
    over_rows,
    scaled,
    tokens_cases,
    vector_cases,
    without_dimensions,
)

#: The default of the signature.
EPS = 1e-6


def normalised(input: Tensor, residual: Tensor | None, eps: float) -> dict[str, Tensor]:
    """total, then rstd with the last dimension 1, then xhat."""
    total = input if residual is None else input + residual
    with wide(total) as (x,):
        rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        return {"total": total, "rstd": rstd, "xhat": x * rstd}


def forward(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = EPS
) -> tuple[Tensor, ...]:
    """(output,), or (output, total); each of the shape of the input."""
    total, _, xhat = normalised(input, residual, eps).values()
    output = stored(xhat, input.dtype)
    output = output if weight is None else output * weight
    return (output,) if residual is None else (output, total)


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    weight: Tensor | None = None,
    residual: Tensor | None = None,
    eps: float = EPS,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    g, *of_total = cotangents
    _, rstd, xhat = normalised(input, residual, eps).values()
    with wide(g, g if weight is None else g * weight) as (wide_g, h):
        difference = h - xhat * (h * xhat).mean(-1, keepdim=True)
    d_total = (rstd * difference).to(input.dtype)
    for r in of_total:
        d_total = d_total + r
    d_weight = over_rows(wide_g * stored(xhat, input.dtype)).to(input.dtype)
    return {"input": d_total, "residual": d_total, "weight": d_weight}


def intermediates(input: Tensor, residual: Tensor | None = None, eps: float = EPS, **_: Tensor) -> dict[str, Tensor]:
    """The steps of `forward` in order."""
    return normalised(input, residual, eps)


def _zero_rows(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    for name in {"input", "residual"} & set(drawn):
        as_rows(drawn[name])[::2] = 0.0


def _outlier(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    as_rows(drawn["input"])[:, -1:] = 1000.0


def _cancelling(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    if "residual" in drawn:
        as_rows(drawn["residual"])[::2] = -as_rows(drawn["input"])[::2]


def _form(
    name: str,
    shape: tuple[str, ...],
    names: tuple[str, ...],
    cases: tuple[Case, ...],
    eps: float = EPS,
    forms: tuple[Operator, ...] = (),
) -> Operator:
    shapes = {"weight": shape[-1:], "residual": shape}
    rest = [TensorArg(each, shapes[each], optional=True) for each in names]
    inputs = (TensorArg("input", shape, any_rank=True), *rest)
    outputs = ("output", "total") if "residual" in names else ("output",)

    def twos(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["input"] = draw.choice(tuple(drawn["input"].shape), (-2.0, 2.0))
        return drawn | ({"residual": drawn["input"] * 0} if "residual" in drawn else {})

    def of_twos(input: Tensor, *rest: Tensor) -> dict[str, Tensor]:
        return {"output": input / math.sqrt(4 + eps) * (rest[0] if "weight" in names else 1)}

    return Formulas("rms_norm", ("input", "weight", "residual"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        {} if eps == EPS else {"eps": eps},
        outputs=tuple(TensorArg(each, shape) for each in outputs),
        autocast=FLOAT32,
        forms=forms,
        cases=cases,
        families=families(
            inputs,
            {
                "zero-rows": ("rows of zeros, where eps is all there is", _zero_rows),
                "outlier": ("one element a thousand times the others, as large models have", _outlier),
                "small-values": ("a mean square of the size of eps", scaled("input", math.sqrt(eps))),
                "large-values": ("values whose squares overflow float16", scaled("input", 4096.0)),
                "cancelling": ("rows that a residual cancels", _cancelling),
                "non-finite": non_finite("input"),
            },
        ),
        invariants=(Invariant("twos", "rows of 2 and -2 are divided by sqrt(4 + eps)", twos, of_twos),),
        refusals=(without_dimensions("input"),),
        elementwise=(f"2*{'*'.join(shape)}", f"3*{'*'.join(shape)}"),
        saved=(TensorArg("rstd", shape[:-1]), *((TensorArg("xhat", shape),) if "weight" in names else ())),
    )


_MODELS = (
    case("llama-3-8b", {"batch": 4, "features": 4096}, "Meta-Llama-3-8B/config.json: hidden_size", "size", "model"),
    case("qwen2.5-7b", {"batch": 4, "features": 3584}, "Qwen2.5-7B/config.json: hidden_size", "size", "model"),
    case("llama-3-8b-prompt", {"batch": 8192, "features": 4096}, "the same, its longest prompt", "benchmark", "model"),
)

OPERATOR = _form(
    "weight",
    ("batch", "features"),
    ("weight",),
    (*matrix_cases("features"), *_MODELS),
    forms=(
        _form("no-weight", ("batch", "tokens", "features"), (), tokens_cases("features"), eps=1e-5),
        _form("vector", ("features",), ("weight",), vector_cases("features"), eps=0.5),
        _form("residual", ("batch", "features"), ("weight", "residual"), few_cases("features"), eps=1e-5),
        _form("residual-alone", ("batch", "tokens", "features"), ("residual",), tokens_cases("features")),
    ),
)
