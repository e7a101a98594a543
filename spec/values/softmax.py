"""Values of softmax and its logarithm: rows at the limits of exp, and rows whose result is known."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, non_finite, on, scaled


def _shift(rows: Tensor, draw: Draw) -> None:
    rows += draw.choice((len(rows), 1), (1000.0, -1000.0))


def _masked(rows: Tensor, _: Draw) -> None:
    rows[:, 1::2] = -30000.0


def _confident(rows: Tensor, draw: Draw) -> None:
    rows[:, -1:] += draw.choice((len(rows), 1), (5.0, 6.0, 8.0))


def _one_hot(rows: Tensor, _: Draw) -> None:
    rows[:, -1:] += 25.0


def _ties(rows: Tensor, draw: Draw) -> None:
    rows[:] = draw.choice(tuple(rows.shape), (-1.0, 0.5))


def _equal(rows: Tensor, _: Draw) -> None:
    rows[:] = rows[:, :1].clone()


def changes(name: str) -> dict[str, tuple[str, Change]]:
    """The value families by name, for rows of the input of that name."""
    return {
        "shifted": ("1000 added to a row or subtracted: exp overflows, or all of it underflows", on(name, _shift)),
        "masked": ("every other element masked by -30000: exactly 0", on(name, _masked)),
        "confident": (
            "one element holds nine tenths or more: log p is small, and has all its digits",
            on(name, _confident),
        ),
        "one-hot": ("one element holds nearly all, so that the gradient cancels", on(name, _one_hot)),
        "wide-spread": ("elements over hundreds of powers of e", scaled(name, 40.0)),
        "ties": ("two values, so that the largest element is not unique", on(name, _ties)),
        "equal-rows": ("all elements of a row equal: 1/N each", on(name, _equal)),
        "non-finite": non_finite(name),
    }


def dominant(input: TensorArg, result: Callable[[Tensor], Tensor], claim: str) -> Invariant:
    """Rows of one 0 and else -20000, whose exponentials are 1 and 0; `result` gives the output."""

    def make(sizes: Sizes, *_: object) -> Drawn:
        values = torch.full(input.shape_for(sizes), -20000.0, dtype=torch.float64)
        values[..., :1] = 0.0
        return {input.name: values}

    return Invariant("dominant", claim, make, lambda given: {"output": result(given)}, bitwise=True)
