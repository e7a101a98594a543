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
xhat w, g xhat, the product with rstd, the sum with r, and the sums over rows. With a residual, rstd may be that of the
sum before it is rounded, and backward may read total, which is rounded: xhat in the bracket then has a rounding of its
own, which rstd does not follow.

Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization" (2019). The derivation is ours.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from spec import rowwise
from spec.blocks import of_half, stored, wide
from spec.contract import FLOAT32, Operator, TensorArg
from spec.forms import Cases, Formulas, Optional, Shape, Tensors
from spec.rowwise import case, few_cases, tokens_cases
from spec.values import rms_norm as values

#: The default of the signature.
EPS = 1e-6


def intermediates(input: Tensor, residual: Optional = None, eps: float = EPS, **_: Tensor) -> dict[str, Tensor]:
    """The steps of `forward` in order: total, then rstd with the last dimension 1, then xhat."""
    total = input if residual is None else input + residual
    with wide(total) as (x,):
        rstd = torch.rsqrt((x * x).mean(-1, keepdim=True) + eps)
        return {"total": total, "rstd": rstd, "xhat": x * rstd}


def forward(input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = EPS) -> tuple[Tensor, ...]:
    """(output,), or (output, total); each of the shape of the input."""
    total, _, xhat = intermediates(input, residual, eps).values()
    output = stored(xhat, input.dtype)
    output = output if weight is None else output * weight
    return (output,) if residual is None else (output, total)


def vjp(
    cotangents: Tensors, input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = EPS
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    g, *of_total = cotangents
    _, rstd, xhat = intermediates(input, residual, eps).values()
    if residual is not None and of_half():  # total as backward reads it, by the rstd of the sum that was not rounded
        xhat = stored(xhat, input.dtype)
    with wide(g, g if weight is None else g * weight) as (wide_g, h):
        difference = h - xhat * (h * xhat).mean(-1, keepdim=True)
    d_total = (rstd * difference).to(input.dtype)
    for r in of_total:
        d_total = d_total + r
    d_weight = rowwise.over_rows(wide_g * stored(xhat, input.dtype)).to(input.dtype)
    return {"input": d_total, "residual": d_total, "weight": d_weight}


def _form(name: str, shape: Shape, names: Shape, cases: Cases, *forms: Operator, eps: float = EPS) -> Operator:
    shapes = {"weight": shape[-1:], "residual": shape}
    rest = [TensorArg(each, shapes[each], optional=True) for each in names]
    inputs = (TensorArg("input", shape, any_rank=True), *rest)
    outputs = ("output", "total") if "residual" in names else ("output",)
    return Formulas("rms_norm", ("input", "weight", "residual"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        {} if eps == EPS else {"eps": eps},
        outputs=tuple(TensorArg(each, shape) for each in outputs),
        autocast=FLOAT32,
        forms=forms,
        cases=cases,
        families=rowwise.families(inputs, values.changes(eps)),
        invariants=(values.twos(inputs, eps),),
        refusals=(rowwise.without_dimensions("input"),),
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
    (*rowwise.matrix_cases("features"), *_MODELS),
    _form("no-weight", ("batch", "tokens", "features"), (), tokens_cases("features"), eps=1e-5),
    _form("vector", ("features",), ("weight",), rowwise.vector_cases("features"), eps=0.5),
    _form("residual", ("batch", "features"), ("weight", "residual"), few_cases("features"), eps=1e-5),
    _form("residual-alone", ("batch", "tokens", "features"), ("residual",), tokens_cases("features")),
)
