"""Whole numbers in the model of rounding: exact once an operation has rounded to them, as long as they are whole."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spec.runs import RUNS, rounded_runs

#: Far from where rounding decides which whole number it is.
X = torch.tensor([[0.2, 1.3, 2.1, -3.2], [4.1, -5.3, 6.2, 7.1]], dtype=torch.float64)


def _in_columns(x: Tensor) -> Tensor:
    made = torch.zeros_like(x)
    made[:, :2] = x.round()[:, :2]
    return made + 1


def _overwritten(x: Tensor) -> Tensor:
    made = x.round()
    made[:, 1] = x[:, 1] / 3
    return made + 1


def _divided_in_place(x: Tensor) -> Tensor:
    made = x.round()
    made /= 3
    return made + 1


EXACT: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda x: torch.round(x) + 8,
    "difference": lambda x: 8 - torch.floor(x) - torch.ceil(x),
    "product": lambda x: 16 * torch.trunc(x) * 2.0,
    "packed": lambda x: x.round()[:, ::2] + 16 * x.round()[:, 1::2],
    "sum-of-powers": lambda x: (x.round().abs() * 2.0 ** torch.arange(4, dtype=x.dtype)).sum(-1),
    "product-with-constants": lambda x: x.round() @ torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=torch.float64),
    "clamped": lambda x: torch.clamp(x.round() + 3, 0, 7.0) - 1,
    "chosen": lambda x: torch.where(x > 0, x.round(), 0.0) + torch.relu(x.round()),
    "signs": lambda x: (torch.sign(x) + 1) / 2,
    "quarters": lambda x: x.round() / 4,
    "remainder": lambda x: x.round() % 3 + x.round() // 2,
    "in-columns": _in_columns,
    "divided-and-rounded": lambda x: torch.div(x, 0.9, rounding_mode="trunc") * 2,
}

ROUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "of-inputs": lambda x: x + 8,
    "of-constants": lambda x: torch.sign(x) * 0 + (torch.ones_like(x) * 1),
    "of-whole-inputs": lambda x: torch.tensor([3.0], dtype=torch.float64) + x * 0,
    "with-a-fraction": lambda x: torch.round(x) + 0.3,
    "clamped-at-a-fraction": lambda x: torch.round(x).clamp(max=6.3) + 1,
    "thirds": lambda x: torch.round(x) / 3,
    "beyond-the-dtype": lambda x: torch.round(x) * 301,
    "mean": lambda x: torch.round(x).mean(-1),
    "rounded-to-tenths": lambda x: torch.round(x, decimals=1) + 1,
    "overwritten": _overwritten,
    "divided-in-place": _divided_in_place,
    "quarters-beyond-the-dtype": lambda x: (torch.round(x) * 32) / 0.0625 + 1,
    "square-root": lambda x: torch.round(x).abs().sqrt() + 1,
}


def _runs(function: Callable[[Tensor], Tensor]) -> tuple[Tensor, list[Tensor]]:
    found = [run[0] for run in rounded_runs(lambda x: (function(x),), (X,), torch.bfloat16, 0)]
    assert len(found) == RUNS
    return function(X), found


@pytest.mark.parametrize("function", EXACT.values(), ids=EXACT)
def test_whole_numbers_stay_exact(function: Callable[[Tensor], Tensor]) -> None:
    exact, runs = _runs(function)
    assert all(torch.equal(run, exact) for run in runs)


@pytest.mark.parametrize("function", ROUNDED.values(), ids=ROUNDED)
def test_what_is_not_whole_errs(function: Callable[[Tensor], Tensor]) -> None:
    exact, runs = _runs(function)
    assert sum(not torch.equal(run, exact) for run in runs) >= RUNS // 2


def test_a_quotient_is_rounded_after_its_error() -> None:
    """5 / 5 is one whole number or the one below: an implementation may multiply by the reciprocal."""
    fives = torch.full((64,), 5.0, dtype=torch.float64)

    def quotient(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (torch.div(x, y, rounding_mode="floor"),)

    found = torch.stack([run[0] for run in rounded_runs(quotient, (fives, fives), torch.float32, 0)])
    assert set(found.unique().tolist()) == {0.0, 1.0}
