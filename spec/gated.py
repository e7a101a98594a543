"""What contracts of gated activations share: act(gate) * up, elementwise, for two tensors of one shape and any rank.

The activations are smooth, so no value decides between two results. Their derivatives cross 0 and saturate, and their
exponentials underflow and overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from spec.blocks import stored, wide
from spec.contract import Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.rowwise import Drawn, families, matrix_cases, non_finite, scaled, tokens_cases, vector_cases

#: activated(gate) and slope(gate), both computed in float32 for half types.
Activation = Callable[[Tensor], Tensor]


def formulas(name: str, activated: Activation, slope: Activation) -> Formulas:
    """Forward and backward of act(gate) * up; act(gate) and g up may be rounded to the dtype, as in composed layers."""

    def intermediates(gate: Tensor, **_: Tensor) -> dict[str, Tensor]:
        with wide(gate) as (x,):
            return {"activated": activated(x)}

    def forward(gate: Tensor, up: Tensor) -> tuple[Tensor]:
        return (stored(intermediates(gate)["activated"], gate.dtype) * up,)

    def vjp(cotangents: tuple[Tensor, ...], gate: Tensor, up: Tensor) -> Mapping[str, Tensor]:
        (g,) = cotangents
        with wide(gate, g * up) as (x, h):
            d_gate = h * slope(x)
        d_up = g * stored(intermediates(gate)["activated"], gate.dtype)
        return {"gate": stored(d_gate, gate.dtype), "up": d_up}

    return Formulas(name, ("gate", "up"), forward, vjp, intermediates)


def _saturated(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    drawn["gate"] = draw.choice(tuple(drawn["gate"].shape), (-200.0, -30.0, -10.0, 10.0, 30.0, 200.0))


def _near_zero(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    drawn["gate"] = draw.choice(tuple(drawn["gate"].shape), (-0.0, 0.0, eps / 8, -eps / 8, 1e-3, -1e-3))


def contract(law: Formulas, turning: float, models: tuple[Case, ...], saved: tuple[str, ...]) -> Operator:
    """The contract, with a form for each rank. The slope of the activation is 0 at `turning`.

    There is no rule for autocast, as PyTorch has none for activations and products of elements.
    """

    def turned(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        drawn["gate"] = turning + draw.choice(tuple(drawn["gate"].shape), (-0.01, -0.001, 0.0, 0.001, 0.01))

    def form(name: str, shape: tuple[str, ...], cases: tuple[Case, ...], forms: tuple[Operator, ...] = ()) -> Operator:
        inputs, elements = (TensorArg("gate", shape, any_rank=True), TensorArg("up", shape)), "*".join(shape)

        def large_gates(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
            drawn = {arg.name: arg.ordinary(sizes, draw) for arg in inputs}
            return drawn | {"gate": draw.choice(tuple(drawn["gate"].shape), (256.0, 512.0))}

        return law.in_form(
            name,
            inputs,
            outputs=(TensorArg("output", shape),),
            forms=forms,
            cases=cases,
            families=families(
                inputs,
                {
                    "saturated": ("gates where the activation is its argument, or nothing", _saturated),
                    "near-zero": ("gates of eps/8, of both zeros and of 0.001", _near_zero),
                    "turning": ("gates about the place where the slope is 0", turned),
                    "large-values": ("products near the range of float16", scaled("up", 4096.0)),
                    "non-finite": non_finite("gate"),
                },
            ),
            invariants=(
                Invariant(
                    "large-gates",
                    "the activation of 256 or more is its argument",
                    large_gates,
                    lambda gate, up: {"output": gate * up},
                ),
            ),
            elementwise=(f"3*{elements}", f"5*{elements}"),
            saved=tuple(TensorArg(each, shape) for each in saved),
        )

    return form(
        "rows",
        ("batch", "features"),
        (*matrix_cases("features"), *models),
        forms=(
            form("tokens", ("batch", "tokens", "features"), tokens_cases("features")),
            form("vector", ("features",), vector_cases("features")),
        ),
    )
