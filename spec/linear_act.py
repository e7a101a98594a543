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

relu' of a NaN is left open, as in `spec.mlp`, which also says how the sign of z is taken. At an infinite z the smooth
activations and their slopes are what the formulas give, NaN where they are inf * 0, as in PyTorch.

Precision. Products add up in float32 for float16 and bfloat16. z, and the product before the bias is added, may be
rounded to the dtype, or kept in float32. Activation and slope are computed in float32; output and d_z are rounded once.

Source: PyTorch's F.linear, F.relu, F.gelu and F.silu; D. Hendrycks, K. Gimpel, "Gaussian Error Linear Units" (2016).
The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Invariant, Operator, Refusal, Sizes, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rounding import stored, wide
from spec.rowwise import Change, Drawn, case, families, ordinary

#: The names that `activation` may have, each with the place where the slope changes its sign.
ACTIVATIONS = {"relu": 0.0, "gelu": -0.7517915, "silu": -1.2784645427610738}
_SAVED = {
    "relu": ("activated",),
    "gelu": ("pre_activations", "argument_of_erf", "distribution"),
    "silu": ("pre_activations",),
}


def pre_activations(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """z, (batch, out_features)."""
    product = input @ weight.t()
    return product if bias is None else product + bias


def activated(z: Tensor, activation: str) -> Tensor:
    """act(z)."""
    if activation == "relu":
        return F.relu(z)
    # Not F.gelu: on a CPU with AVX512 it is NaN at inf (docs/findings.md).
    return z * distribution(z) if activation == "gelu" else F.silu(z)


def distribution(z: Tensor) -> Tensor:
    """Phi(z), the distribution function of the normal distribution."""
    return 0.5 * (1 + torch.erf(z * math.sqrt(0.5)))


def smooth_slope(z: Tensor, activation: str) -> Tensor:
    """The derivative of gelu or silu."""
    if activation == "gelu":
        density = torch.exp(z * z * -0.5) * (1 / math.sqrt(2 * math.pi))
        return distribution(z) + z * density
    s = torch.sigmoid(z)
    return either(lambda: s * (1 + z * (1 - s)), lambda: s + z * s * (1 - s))


def intermediates(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu"
) -> dict[str, Tensor]:
    """The pre-activations."""
    del activation
    return {"pre_activations": pre_activations(input, weight, bias)}


def forward(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str = "relu") -> tuple[Tensor]:
    """(output,), of shape (batch, out_features)."""
    with wide(pre_activations(input, weight, bias)) as (z,):
        output = activated(z, activation)
    return (stored(output, input.dtype),)


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str = "relu",
    at_nan: float | None = None,
) -> Mapping[str, Tensor]:
    """Gradients by name; `at_nan` is relu' of NaN times the cotangent, which is the cotangent if it is None."""
    (g,) = cotangents
    z = pre_activations(input, weight, bias)
    if activation == "relu":
        g = g if at_nan is None else g.masked_fill(z.isnan(), at_nan)
        again = pre_activations(input, weight, bias)
        decided = torch.where(z.isfinite(), z + (z - again), z)  # inf - inf would be NaN
        d_z = torch.where(decided <= 0, torch.zeros_like(g), g)
    else:
        with wide(z, g) as (z, g):
            d_z = g * smooth_slope(z, activation)
        d_z = stored(d_z, input.dtype)
    return {"input": d_z @ weight, "weight": d_z.t() @ input, "bias": d_z.sum(0)}


def _form(
    name: str, names: tuple[str, ...], cases: tuple[Case, ...], activation: str, forms: tuple[Operator, ...] = ()
) -> Operator:
    every = {
        "input": TensorArg("input", ("batch", "in_features")),
        "weight": TensorArg("weight", ("out_features", "in_features"), scale="(in_features + 1)**-0.5"),
        "bias": TensorArg("bias", ("out_features",), scale="0.5", optional=True),
    }
    inputs = tuple(every[each] for each in names)
    law = Formulas("linear_act", ("input", "weight", "bias"), forward, vjp, intermediates)
    given = {} if activation == "relu" else {"activation": activation}

    def solved_for(drawn: Drawn, draw: Draw, values: tuple[float, ...]) -> Drawn:
        # Row b of the input is the unit vector b modulo its length: each product has one term and no rounding.
        batch, features = drawn["input"].shape
        drawn["input"] = torch.eye(features, dtype=torch.float64).repeat(-(-batch // max(features, 1)), 1)[:batch]
        drawn["input"] = drawn["input"].reshape(batch, features)
        drawn["weight"] = draw.choice(tuple(drawn["weight"].shape), values)
        return drawn | ({"bias": drawn["bias"] * 0} if "bias" in drawn else {})

    def chosen(*values: float) -> Change:
        return lambda drawn, draw, _: drawn.update(solved_for(drawn, draw, values))

    def tiny(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        eps, least = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
        drawn.update(solved_for(drawn, draw, (-eps / 8, eps / 8, -eps, -least, least, 0.0, -0.0)))

    def huge(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        # The square must not overflow float64, since the allowance needs it.
        most = min(torch.finfo(dtype).max / 32, 2.0**500)
        drawn.update(solved_for(drawn, draw, (most, -most, most / 2, 1.0)))

    def dead(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        if "bias" in drawn:
            drawn["bias"][::2] = -100.0

    def non_finite(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
        # No -inf in bfloat16: a product may multiply the tail of a row by 0 in the next one, see `spec.lltm`.
        rows = drawn["input"]
        for row, value in zip(range(rows.shape[0]), (float("nan"), float("inf"), -float("inf")), strict=False):
            if rows.shape[1] and not (dtype == torch.bfloat16 and value == -float("inf")):
                rows[row, row % rows.shape[1]] = value

    def of_unit_vectors(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        values = (-256.0, -0.5, 0.5, 256.0) if activation == "relu" else (256.0, 512.0)
        return solved_for(ordinary(inputs, sizes, draw), draw, values)

    def their_weights(input: Tensor, weight: Tensor, *_: Tensor) -> dict[str, Tensor]:
        return {"output": weight.t()[torch.arange(len(input)) % input.shape[1]].clamp(min=0)}

    def unspecified(tensors: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        named = dict(zip(names, tensors, strict=True))
        found = vjp(cotangents, **named, activation=activation, at_nan=math.nan)
        return tuple(found[each] for each in names)

    turning, product = ACTIVATIONS[activation], "batch*out_features*in_features"
    return law.in_form(
        name,
        inputs,
        given,
        outputs=(TensorArg("output", ("batch", "out_features")),),
        unspecified=unspecified,
        autocast=LOWER,
        forms=forms,
        cases=cases,
        families=families(
            inputs,
            {
                "zero-pre-activations": ("every pre-activation exactly 0, where relu has its kink", chosen(0.0)),
                "tiny-pre-activations": ("of eps/8, smallest normals, negative zero", tiny),
                "turning": (
                    "about the place where the slope changes its sign",
                    chosen(*(turning + step for step in (-0.01, -0.001, 0.001, 0.01))),
                ),
                "saturated": (
                    "where the activation is its argument, or nothing, and exp overflows",
                    chosen(-1000.0, -30.0, -5.0, 5.0, 30.0, 1000.0),
                ),
                "huge": ("values near the overflow of the dtype", huge),
                "dead-units": ("every other unit far below 0 in all rows", dead),
                "non-finite": ("inf and NaN in three rows, which must stay in their rows", non_finite),
            },
        ),
        invariants=(
            Invariant(
                "unit-vectors",
                "for unit vectors the output is the column of the weight, 0 where relu makes it 0",
                of_unit_vectors,
                their_weights,
                bitwise=True,
            ),
        ),
        refusals=(
            Refusal(
                "an activation that does not exist",
                "activation",
                lambda function, *tensors: function(*tensors, activation="tanhh"),
                ("tanhh", "relu"),
            ),
        ),
        flops=(f"2*{product}", f"4*{product}"),
        elementwise=("2*batch*out_features", "3*batch*out_features"),
        saved=tuple(TensorArg(each, ("batch", "out_features")) for each in _SAVED[activation]),
    )


def _case(name: str, batch: int, features: int, outputs: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "in_features": features, "out_features": outputs}, origin, *tags)


_FEW = (
    _case("digits", 16, 64, 128, "images of 8x8", "size", "benchmark"),
    _case("small", 3, 4, 5, "every size another, odd or below the vector width", "size", "small"),
    _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
    _case("tails", 17, 33, 65, "tails of tiles in all three sizes", "size"),
    _case("tile", 16, 32, 64, "full tiles in all three sizes", "size"),
)
_CASES = (
    *_FEW,
    _case("square", 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-row", 1, 3, 8, "batch 1", "size", "small"),
    _case("one-everything", 1, 1, 1, "the least that is not empty", "size", "small"),
    _case("no-outputs", 3, 4, 0, "an output of width 0", "size"),
    *(
        _case(f"outputs-{size}", 3, 5, size, "tail of a vector, a warp or a block", "size")
        for size in (3, 7, 31, 33, 127, 129, 255, 257, 1025)
    ),
    _case("long-sums", 5, 4099, 3, "sums of thousands of terms, which a kernel splits", "size"),
    _case("batch-70000", 70000, 2, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("opt-125m", 4, 768, 3072, "opt-125m/config.json: hidden_size, ffn_dim; relu", "benchmark", "model"),
    _case("more-than-2^31", 2**20 + 3, 2, 2100, "an output of more than 2^31 elements", "large"),
    _case("large", 8192, 4096, 16384, "opt-6.7b/config.json: hidden_size, ffn_dim; relu", "benchmark", "model"),
)
_GELU = (
    *_FEW,
    _case("bert-base", 4, 768, 3072, "bert-base-uncased/config.json: hidden_act gelu", "benchmark", "model"),
)
_SILU = (
    *_FEW,
    _case("llama-3-8b", 8192, 4096, 14336, "Meta-Llama-3-8B/config.json: hidden_act silu", "benchmark", "model"),
)
OPERATOR = _form(
    "relu",
    ("input", "weight", "bias"),
    _CASES,
    "relu",
    (
        _form("gelu", ("input", "weight", "bias"), _GELU, "gelu"),
        _form("silu", ("input", "weight"), _SILU, "silu"),
    ),
)
