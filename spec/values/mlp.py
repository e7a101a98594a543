"""Values of MLP: pre-activations that are chosen exactly, hidden units of one sign, and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Family, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, Make, changed, ordinary
from spec.rowwise import families as of_changes

_Chosen = tuple[float, ...]


def _zero(_: torch.dtype) -> _Chosen:
    return (0.0,)


def _tiny(dtype: torch.dtype) -> _Chosen:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    return -eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0, -0.0


def _huge(dtype: torch.dtype) -> _Chosen:
    # A product with weights of order 1 must not overflow, and in float64 its square, which the allowance needs.
    huge = min(torch.finfo(dtype).max / 32, 2.0**500)
    return huge, -huge, huge / 2, 1.0


def _solved_for(inputs: Sequence[TensorArg], values: Callable[[torch.dtype], _Chosen]) -> Make:
    """Inputs whose pre-activations are exactly of these values.

    Row b of the input is the unit vector b modulo its length, so each product has one term and no rounding. Row b of
    the batch then gets column b (modulo their number) of the hidden weights.
    """

    def make(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Drawn:
        batch, features, hidden = sizes["batch"], sizes["input_features"], sizes["hidden_size"]
        pre_activations = draw.choice((features, hidden), values(dtype))
        input = torch.eye(features, dtype=torch.float64).repeat(-(-batch // max(features, 1)), 1)[:batch]
        return {
            **ordinary(inputs, sizes, draw),
            "input": input.reshape(batch, features),
            "hidden_weights": pre_activations.t().contiguous(),
            "hidden_bias": torch.zeros(hidden, dtype=torch.float64),
        }

    return make


def _denormals(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    quarter = torch.finfo(dtype).tiny / 4
    drawn["input"] = draw.choice(tuple(drawn["input"].shape), (quarter, -quarter, 1.0))
    drawn["hidden_bias"] = draw.choice(tuple(drawn["hidden_bias"].shape), (quarter, -quarter, 0.0))


def _biased_by(bias: float, units: slice) -> Change:
    """`bias` as the bias of the hidden units `units`; products are of order 1 beside it."""

    def change(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        drawn["hidden_bias"][units] = bias

    return change


_EVERY = slice(None)
_DEAD_UNITS, _DEAD, _LIVE = (
    _biased_by(-100.0, slice(None, None, 2)),
    _biased_by(-100.0, _EVERY),
    _biased_by(16.0, _EVERY),
)


def _non_finite(drawn: Drawn, _: Draw, dtype: torch.dtype) -> None:
    """NaN, +inf and -inf in the first rows of the input; all other rows stay ordinary.

    In bfloat16 there is no -inf: a product may multiply the tail of a row by 0 in the next one, see `spec.values.lltm`.
    """
    rows = drawn["input"]
    for row, value in zip(range(len(rows)), (float("nan"), float("inf"), -float("inf")), strict=False):
        if rows.shape[1] and not (dtype == torch.bfloat16 and value == -float("inf")):
            rows[row, row % rows.shape[1]] = value


def _zero_hidden_parameters(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    for name in ("hidden_weights", "hidden_bias"):
        drawn[name] = torch.zeros_like(drawn[name])


def families(inputs: Sequence[TensorArg]) -> tuple[Family, ...]:
    """The value families."""
    zero, tiny, huge = (_solved_for(inputs, values) for values in (_zero, _tiny, _huge))
    denormals, dead_units, dead_layer, non_finite = of_changes(
        inputs,
        {
            "denormals": ("inputs below the smallest normal number", _denormals),
            "dead-units": ("every other hidden unit negative for all rows", _DEAD_UNITS),
            "dead-layer": ("every hidden unit negative for all rows", _DEAD),
            "non-finite": ("inf and NaN in three rows, which must stay in their rows", _non_finite),
        },
    )
    return (
        Family("zero-pre-activations", "every pre-activation exactly 0, where relu has its kink", zero),
        Family("tiny-pre-activations", "of -eps/8, smallest normals, negative zero", tiny),
        denormals,
        Family("huge-hidden", "hidden values near the overflow of the dtype", huge),
        dead_units,
        dead_layer,
        non_finite,
    )


def _output_bias_alone(*inputs: Tensor) -> dict[str, Tensor]:
    return {"output": inputs[4].expand(len(inputs[0]), -1)}


def _affine(*inputs: Tensor) -> dict[str, Tensor]:
    input, hidden_weights, hidden_bias, output_weights, output_bias = inputs
    return {"output": input @ (output_weights @ hidden_weights).t() + (output_weights @ hidden_bias + output_bias)}


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """What a dead, a zero and a live hidden layer make of the output."""

    def of(
        name: str, claim: str, change: Change, outputs: Callable[..., dict[str, Tensor]], bitwise: bool
    ) -> Invariant:
        return Invariant(name, claim, changed(inputs, change), outputs, bitwise)

    dead = "a hidden layer that is negative throughout gives the output bias"
    zero = "zero hidden weights and bias give the output bias"
    live = "a hidden layer that is positive throughout makes the operator affine"
    return (
        of("dead-hidden-layer", dead, _DEAD, _output_bias_alone, True),
        of("zero-hidden-parameters", zero, _zero_hidden_parameters, _output_bias_alone, True),
        of("live-hidden-layer", live, _LIVE, _affine, False),
    )
