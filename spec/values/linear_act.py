"""Values of a linear layer with activation: pre-activations that are chosen exactly, and the weights they come from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.activations import ACTIVATIONS
from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, ordinary


def _solved_for(drawn: Drawn, draw: Draw, values: tuple[float, ...]) -> Drawn:
    # Row b of the input is the unit vector b modulo its length: each product has one term and no rounding.
    batch, features = drawn["input"].shape
    drawn["input"] = torch.eye(features, dtype=torch.float64).repeat(-(-batch // max(features, 1)), 1)[:batch]
    drawn["input"] = drawn["input"].reshape(batch, features)
    drawn["weight"] = draw.choice(tuple(drawn["weight"].shape), values)
    return drawn | ({"bias": drawn["bias"] * 0} if "bias" in drawn else {})


def _chosen(*values: float) -> Change:
    return lambda drawn, draw, _: drawn.update(_solved_for(drawn, draw, values))


def _tiny(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    eps, least = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    drawn.update(_solved_for(drawn, draw, (-eps / 8, eps / 8, -eps, -least, least, 0.0, -0.0)))


def _huge(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    # The square must not overflow float64, since the allowance needs it.
    most = min(torch.finfo(dtype).max / 32, 2.0**500)
    drawn.update(_solved_for(drawn, draw, (most, -most, most / 2, 1.0)))


def _dead(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    if "bias" in drawn:
        drawn["bias"][::2] = -100.0


def _non_finite(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
    # No -inf in bfloat16: a product may multiply the tail of a row by 0 in the next one, see `spec.lltm`.
    rows = drawn["input"]
    for row, value in zip(range(rows.shape[0]), (float("nan"), float("inf"), -float("inf")), strict=False):
        if rows.shape[1] and not (dtype == torch.bfloat16 and value == -float("inf")):
            rows[row, row % rows.shape[1]] = value


def changes(activation: str) -> dict[str, tuple[str, Change]]:
    """The value families of a form, by name."""
    about = (ACTIVATIONS[activation] + step for step in (-0.01, -0.001, 0.001, 0.01))
    saturated = _chosen(-1000.0, -30.0, -5.0, 5.0, 30.0, 1000.0)
    return {
        "zero-pre-activations": ("every pre-activation exactly 0, where relu has its kink", _chosen(0.0)),
        "tiny-pre-activations": ("of eps/8, smallest normals, negative zero", _tiny),
        "turning": ("about the place where the slope changes its sign", _chosen(*about)),
        "saturated": ("where the activation is its argument, or nothing, and exp overflows", saturated),
        "huge": ("values near the overflow of the dtype", _huge),
        "dead-units": ("every other unit far below 0 in all rows", _dead),
        "non-finite": ("inf and NaN in three rows, which must stay in their rows", _non_finite),
    }


def unit_vectors(inputs: Sequence[TensorArg], activation: str) -> Invariant:
    """Pre-activations that the activation does not change, or makes 0."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        values = (-256.0, -0.5, 0.5, 256.0) if activation == "relu" else (256.0, 512.0)
        return _solved_for(ordinary(inputs, sizes, draw), draw, values)

    def outputs(input: Tensor, weight: Tensor, *_: Tensor) -> dict[str, Tensor]:
        return {"output": weight.t()[torch.arange(len(input)) % input.shape[1]].clamp(min=0)}

    claim = "for unit vectors the output is the column of the weight, 0 where relu makes it 0"
    return Invariant("unit-vectors", claim, make, outputs, bitwise=True)
