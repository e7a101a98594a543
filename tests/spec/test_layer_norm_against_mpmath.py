"""LayerNorm in 50-digit scalar arithmetic: the contract, evaluated in float64, is right to a few roundings.

Nothing here is shared with `spec.layer_norm`. mpmath differentiates a row numerically, so that no formula of the closed
form is repeated.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spec import layer_norm
from spec.contract import Case, Family
from tests.spec.fifty_digits import Matrix, Row, Vjp, agrees, disagreements, drawn, exact, finite, mp, small

#: The form with weight and bias, over the last dimension of a matrix, with the default eps.
ROWS = layer_norm.OPERATOR


def normalised(row: Row) -> tuple[Any, Row]:
    """(rstd, xhat) of one row; eps is the float64 number that a caller writes as 1e-5."""
    mean = mp.fsum(row) / len(row)
    rstd = 1 / mp.sqrt(mp.fsum((x - mean) ** 2 for x in row) / len(row) + mp.mpf(1e-5))
    return rstd, [(x - mean) * rstd for x in row]


def slopes(row: Row, g: Row, weight: Row) -> Row:
    """The derivative of <g, output> by each element of one row, numerically."""

    def weighted(*row: Any) -> Any:
        _, xhat = normalised(list(row))
        return mp.fsum(a * b * c for a, b, c in zip(g, weight, xhat, strict=True))

    return [mp.diff(weighted, tuple(row), tuple(int(i == j) for j in range(len(row)))) for i in range(len(row))]


def layer_norm_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    input, (weight,), (bias,) = (exact(tensor) for tensor in inputs)
    g = exact(cotangents[0])
    steps = [normalised(row) for row in input]
    xhat = [row for _, row in steps]
    rows, features = range(len(input)), range(len(weight))
    return {
        "rstd": [[rstd] for rstd, _ in steps],
        "xhat": xhat,
        "output": [[xhat[b][f] * weight[f] + bias[f] for f in features] for b in rows],
        "d_input": [slopes(input[b], g[b], weight) for b in rows],
        "d_weight": [[mp.fsum(g[b][f] * xhat[b][f] for b in rows) for f in features]],
        "d_bias": [[mp.fsum(g[b][f] for b in rows) for f in features]],
    }


#: A mean of 4 eps^(-1/2) takes 26 of the 53 bits. The contract is not to blame for what float64 loses there.
FAMILIES = [family for family in finite(ROWS) if family.name != "large-mean"]


@pytest.mark.parametrize("value_family", FAMILIES, ids=lambda family: family.name)
@pytest.mark.parametrize("rows_case", small(ROWS), ids=lambda case: case.name)
def test_the_law_is_right(rows_case: Case, value_family: Family) -> None:
    units = disagreements(ROWS, layer_norm_exactly, *drawn(ROWS, rows_case, value_family), ROWS.vjp)
    assert agrees(units), units


def without_the_mean(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """d_input as if the mean did not depend on the input."""
    _, weight, _ = inputs
    d_input, *others = ROWS.vjp(inputs, cotangents)
    rstd = ROWS.intermediates(*inputs)["rstd"]
    return d_input + rstd * (cotangents[0] * weight).mean(-1, keepdim=True), *others


def with_the_weight_left_out(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """d_input as if every weight were 1."""
    _, *others = ROWS.vjp(inputs, cotangents)
    d_input, *_ = ROWS.vjp((inputs[0], torch.ones_like(inputs[1]), inputs[2]), cotangents)
    return d_input, *others


def with_the_bias_of_one_row(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The bias gets the cotangent of the first row alone."""
    *others, _ = ROWS.vjp(inputs, cotangents)
    return *others, cotangents[0][0]


@pytest.mark.parametrize("wrong", [without_the_mean, with_the_weight_left_out, with_the_bias_of_one_row])
def test_a_wrong_gradient_is_rejected(wrong: Vjp) -> None:
    call = drawn(ROWS, ROWS.case("small"), ROWS.family("normal"))
    assert not agrees(disagreements(ROWS, layer_norm_exactly, *call, wrong))
