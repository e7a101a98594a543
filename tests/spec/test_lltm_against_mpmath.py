"""LLTM in 50-digit scalar arithmetic: the contract, evaluated in float64, is right to a few roundings.

Nothing here is shared with `spec.lltm`. The elementwise part maps four scalars to two. mpmath differentiates it
numerically, so that no formula of the closed form is repeated.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from spec import lltm
from spec.contract import Case, Family
from tests.spec.fifty_digits import (
    EPS,
    ROUNDINGS,
    TINY,
    Matrix,
    Row,
    Vjp,
    agrees,
    disagreements,
    drawn,
    exact,
    finite,
    mp,
    small,
)

#: Pre-activations at which implementations go wrong: the kink of elu, digits that 1 + z loses, the overflow of exp.
HARD = (0.0, -1e-300, -1e-17, -1e-3, 1.0, -30.0, -800.0, 800.0)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + mp.exp(-z))


def elu(z: Any) -> Any:
    return z if z > 0 else mp.expm1(z)


def cell(z_i: Any, z_o: Any, z_k: Any, old_cell: Any) -> tuple[Any, Any]:
    """(new_h, new_cell) of one unit, from its three pre-activations."""
    new_cell = old_cell + elu(z_k) * sigmoid(z_i)
    return mp.tanh(new_cell) * sigmoid(z_o), new_cell


def cell_slopes(point: Row, g_h: Any, g_c: Any) -> Row:
    """The derivatives of g_h*new_h + g_c*new_cell by z_i, z_o, z_k and old_cell, numerically."""

    def weighted(*point: Any) -> Any:
        new_h, new_cell = cell(*point)
        return g_h * new_h + g_c * new_cell

    return [mp.diff(weighted, tuple(point), tuple(int(i == j) for j in range(4))) for i in range(4)]


def lltm_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    input, weights, (bias,), old_h, old_cell = (exact(tensor) for tensor in inputs)
    g_h, g_c = (exact(tensor) for tensor in cotangents)
    state = range(len(old_h[0]))
    size = len(state)
    X = [h + x for h, x in zip(old_h, input, strict=True)]
    batch, width, gate_rows = range(len(X)), range(len(X[0])), range(3 * size)

    gates = [[mp.fsum(X[b][j] * weights[r][j] for j in width) + bias[r] for r in gate_rows] for b in batch]
    points = [[[gates[b][s], gates[b][size + s], gates[b][2 * size + s], old_cell[b][s]] for s in state] for b in batch]
    outputs = [[cell(*points[b][s]) for s in state] for b in batch]

    slopes = [[cell_slopes(points[b][s], g_h[b][s], g_c[b][s]) for s in state] for b in batch]
    d_gates = [[slopes[b][s][gate] for gate in range(3) for s in state] for b in batch]
    d_X = [[mp.fsum(d_gates[b][r] * weights[r][j] for r in gate_rows) for j in width] for b in batch]
    return {
        "gates": gates,
        "input_gate": [[sigmoid(z) for z in row[:size]] for row in gates],
        "output_gate": [[sigmoid(z) for z in row[size : 2 * size]] for row in gates],
        "candidate": [[elu(z) for z in row[2 * size :]] for row in gates],
        "new_cell": [[new_cell for _, new_cell in row] for row in outputs],
        "new_h": [[new_h for new_h, _ in row] for row in outputs],
        "d_input": [row[size:] for row in d_X],
        "d_weights": [[mp.fsum(d_gates[b][r] * X[b][j] for b in batch) for j in width] for r in gate_rows],
        "d_bias": [[mp.fsum(d_gates[b][r] for b in batch) for r in gate_rows]],
        "d_old_h": [row[:size] for row in d_X],
        "d_old_cell": [[slopes[b][s][3] for s in state] for b in batch],
    }


@pytest.mark.parametrize("value_family", finite(lltm.OPERATOR), ids=lambda family: family.name)
@pytest.mark.parametrize("lltm_case", small(lltm.OPERATOR), ids=lambda case: case.name)
def test_the_law_is_right(lltm_case: Case, value_family: Family) -> None:
    units = disagreements(lltm.OPERATOR, lltm_exactly, *drawn(lltm.OPERATOR, lltm_case, value_family), lltm.vjp)
    assert agrees(units), units


def hard_points() -> tuple[Tensor, ...]:
    """Inputs of one unit whose three pre-activations run over all triples of HARD; the old cell is 0.

    The weights are [0 | identity], so that the pre-activations are the input, without rounding.
    """
    input = torch.tensor(list(itertools.product(HARD, repeat=3)), dtype=torch.float64)
    zeros = torch.zeros(len(input), 1, dtype=torch.float64)
    weights = torch.cat([torch.zeros(3, 1), torch.eye(3)], dim=1).to(torch.float64)
    return input, weights, torch.zeros(3, dtype=torch.float64), zeros, zeros


def test_forward_is_right_relative_to_each_element_where_it_is_hard() -> None:
    # With an old cell of 0 nothing cancels, so even 1e-300 must come out with all its digits.
    inputs = hard_points()
    for (z_i, z_o, z_k), *actual in zip(exact(inputs[0]), *map(exact, lltm.forward(*inputs)), strict=True):
        for (value,), expected in zip(actual, cell(z_i, z_o, z_k, mp.zero), strict=True):
            assert abs(value - expected) <= ROUNDINGS * EPS * abs(expected) + TINY, (z_i, z_o, z_k)


@pytest.mark.parametrize("cotangents", [(1.0, 0.0), (0.0, 1.0), (-0.5, 2.0)], ids=["new_h", "new_cell", "both"])
def test_vjp_is_right_at_each_element_where_it_is_hard(cotangents: tuple[float, float]) -> None:
    inputs = hard_points()
    g_h, g_c = (torch.full_like(inputs[3], g) for g in cotangents)
    d_gates, *_, d_old_cell = lltm.vjp(inputs, (g_h, g_c))
    rows = zip(exact(inputs[0]), exact(torch.cat([d_gates, d_old_cell], dim=1)), strict=True)
    for point, actual in rows:
        allowed = ROUNDINGS * EPS * max(1, abs(point[2]))  # the input gate's slope is multiplied by the candidate
        for value, expected in zip(actual, cell_slopes([*point, mp.zero], *cotangents), strict=True):
            assert abs(value - expected) <= allowed, point


def without_new_cells_cotangent(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Backward as if only new_h had been used."""
    return lltm.vjp(inputs, (cotangents[0], torch.zeros_like(cotangents[1])))


def with_two_gates_swapped(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The rows of the input gate and of the output gate are exchanged in the gradient of the weights."""
    d_input, d_weights, *others = lltm.vjp(inputs, cotangents)
    d_in, d_out, d_candidate = d_weights.chunk(3)
    return d_input, torch.cat([d_out, d_in, d_candidate]), *others


def with_slope_0_at_the_kink(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """elu'(0) = 0, as the tutorial's Python and C++ code had it: no gradient reaches the candidate's bias."""
    d_input, d_weights, d_bias, *others = lltm.vjp(inputs, cotangents)
    d_in, d_out, d_candidate = d_bias.chunk(3)
    return d_input, d_weights, torch.cat([d_in, d_out, torch.zeros_like(d_candidate)]), *others


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (without_new_cells_cotangent, "normal"),
        (with_two_gates_swapped, "normal"),
        (with_slope_0_at_the_kink, "zero-gates"),
    ],
)
def test_a_wrong_gradient_is_rejected(wrong: Vjp, name: str) -> None:
    call = drawn(lltm.OPERATOR, lltm.OPERATOR.case("small"), lltm.OPERATOR.family(name))
    assert not agrees(disagreements(lltm.OPERATOR, lltm_exactly, *call, wrong))
