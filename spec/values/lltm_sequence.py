"""Values of LLTM over a sequence: those of the cell in its first step or in all, and closed forms."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Family, Invariant, TensorArg
from spec.rowwise import Change, Drawn, changed
from spec.rowwise import families as of_changes
from spec.values.lltm import close_gate, negative_gates, overflowing, zero_parameters


def _first_step_sees(drawn: Drawn, draw: Draw, values: tuple[float, ...]) -> None:
    """Change the inputs so that each pre-activation of the first step is exactly one of `values`.

    h0 and the bias are 0, and row b of the first input is the unit vector b modulo its length, so each product has one
    term and no rounding. From the second step on the input is 0 and the recurrence is an ordinary one.
    """
    steps, batch, features = drawn["input"].shape
    state_size = drawn["h0"].shape[1]
    drawn["input"].zero_()
    if features and steps:
        drawn["input"][0] = torch.eye(features, dtype=torch.float64).repeat(-(-batch // features), 1)[:batch]
    drawn["weights"][:, state_size:] = draw.choice((3 * state_size, features), values)
    drawn["bias"].zero_()
    drawn["h0"].zero_()


def _zero_gates(drawn: Drawn, draw: Draw, _: torch.dtype) -> None:
    _first_step_sees(drawn, draw, (0.0,))


def _overflowing_exp(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    _first_step_sees(drawn, draw, overflowing(dtype))


def _huge_cells(drawn: Drawn, draw: Draw, _: torch.dtype) -> None:
    drawn["c0"] = draw.choice(tuple(drawn["c0"].shape), (1e4, -1e4, 30.0, -30.0, 0.0))


def _non_finite(drawn: Drawn, _: Draw, dtype: torch.dtype) -> None:
    """NaN, +inf and -inf in the first rows of c0, and of the input in one step each; the other rows stay ordinary.

    In bfloat16 +inf and -inf are in c0 only, which leaves all gates finite. With AMX, a oneDNN product of more than 16
    rows in bfloat16 multiplies the tail of each row by 0 in the next one (torch 2.13, 20x27 by 27x8), so a NaN would
    spread. Over several steps some ordinary row precedes a row that is not, whichever rows are chosen.
    """
    cells = drawn["c0"]
    for row, value in zip(range(len(cells)), (float("nan"), float("inf"), -float("inf")), strict=False):
        for rows in (cells, *drawn["input"][row : row + 1]):
            if dtype == torch.bfloat16 and (rows is not cells or value != value):
                continue
            if rows.shape[1]:
                rows[row, row % rows.shape[1]] = value


_CHANGES: dict[str, tuple[str, Change]] = {
    "zero-gates": ("first pre-activations of exactly 0, where elu has its kink", _zero_gates),
    "overflowing-exp": ("first pre-activations beyond the overflow of exp", _overflowing_exp),
    "huge-cells": ("cells of 1e4, where tanh is flat", _huge_cells),
    "closed-gate": ("an input gate that is 0 to the last bit in every step", close_gate),
    "negative-gates": ("pre-activations that are all negative: no other branch is taken", negative_gates),
    "non-finite": ("inf and NaN in three rows, which must stay in their rows", _non_finite),
}


def families(inputs: Sequence[TensorArg]) -> tuple[Family, ...]:
    """The value families."""
    return of_changes(inputs, _CHANGES)


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """What a closed gate and zero parameters make of the cell, however many steps there are."""

    def kept(*inputs: Tensor) -> dict[str, Tensor]:
        return {"c_T": inputs[4]}

    def half_tanh(*inputs: Tensor) -> dict[str, Tensor]:
        input, *_, c0 = inputs
        return {"h": (torch.tanh(c0) / 2).expand(len(input), *c0.shape).clone(), "c_T": c0}

    closed, zero = changed(inputs, close_gate), changed(inputs, zero_parameters)
    of_closed = "an input gate of 0 leaves the cell as it was, however many steps there are"
    of_zero = "zero weights and bias give c_T = c0 and h = tanh(c0)/2 in every step"
    return (
        Invariant("closed-input-gate", of_closed, closed, kept, bitwise=True),
        Invariant("zero-parameters", of_zero, zero, half_tanh),
    )
