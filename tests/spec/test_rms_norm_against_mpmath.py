"""RMSNorm in 50-digit scalar arithmetic: the contract, evaluated in float64, is right to a few roundings.

Nothing here is shared with `spec.rms_norm`. mpmath differentiates a row numerically, so that no formula of the closed
form is repeated.
"""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor

from spec import rms_norm
from spec.contract import Case, Family
from tests.spec.fifty_digits import Matrix, Row, Vjp, agrees, disagreements, drawn, exact, finite, mp, small

#: The form with weight and residual; its eps is the float64 number that a caller writes as 1e-5.
RESIDUAL = rms_norm.OPERATOR.in_form("residual")


def normalised(row: Row) -> tuple[Any, Row]:
    """(rstd, xhat) of one row."""
    rstd = 1 / mp.sqrt(mp.fsum(x**2 for x in row) / len(row) + mp.mpf(1e-5))
    return rstd, [x * rstd for x in row]


def slopes(row: Row, g: Row, weight: Row) -> Row:
    """The derivative of <g, output> by each element of one row, numerically."""

    def weighted(*row: Any) -> Any:
        _, xhat = normalised(list(row))
        return mp.fsum(a * b * c for a, b, c in zip(g, weight, xhat, strict=True))

    return [mp.diff(weighted, tuple(row), tuple(int(i == j) for j in range(len(row)))) for i in range(len(row))]


def rms_norm_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    input, (weight,), residual = (exact(tensor) for tensor in inputs)
    g, r = (exact(tensor) for tensor in cotangents)
    rows, features = range(len(input)), range(len(weight))
    total = [[input[b][f] + residual[b][f] for f in features] for b in rows]
    steps = [normalised(row) for row in total]
    xhat = [row for _, row in steps]
    d_total = [[s + r[b][f] for f, s in enumerate(slopes(total[b], g[b], weight))] for b in rows]
    return {
        "total": total,
        "rstd": [[rstd] for rstd, _ in steps],
        "xhat": xhat,
        "output": [[xhat[b][f] * weight[f] for f in features] for b in rows],
        "d_input": d_total,
        "d_weight": [[mp.fsum(g[b][f] * xhat[b][f] for b in rows) for f in features]],
        "d_residual": d_total,
    }


@pytest.mark.parametrize("value_family", finite(RESIDUAL), ids=lambda family: family.name)
@pytest.mark.parametrize("rows_case", small(RESIDUAL), ids=lambda case: case.name)
def test_the_law_is_right(rows_case: Case, value_family: Family) -> None:
    units = disagreements(RESIDUAL, rms_norm_exactly, *drawn(RESIDUAL, rows_case, value_family), RESIDUAL.vjp)
    assert agrees(units), units


def without_the_root(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """d_input as if the root mean square did not depend on the row."""
    _, weight, _ = inputs
    _, d_weight, _ = RESIDUAL.vjp(inputs, cotangents)
    d_total = RESIDUAL.intermediates(*inputs)["rstd"] * cotangents[0] * weight + cotangents[1]
    return d_total, d_weight, d_total


def without_the_new_residual(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The cotangent of the new residual goes nowhere."""
    return RESIDUAL.vjp(inputs, (cotangents[0], cotangents[1] * 0))


@pytest.mark.parametrize("wrong", [without_the_root, without_the_new_residual])
def test_a_wrong_gradient_is_rejected(wrong: Vjp) -> None:
    call = drawn(RESIDUAL, RESIDUAL.case("small"), RESIDUAL.family("normal"))
    assert not agrees(disagreements(RESIDUAL, rms_norm_exactly, *call, wrong))
