"""MLP in 50-digit scalar arithmetic: the contract, evaluated in float64, is right to a few roundings.

Nothing here is shared with `spec.mlp`. The derivative of relu is its slope, measured on the side where its argument
lies. At 0 no measurement can give it, and the test uses the contract's value.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spec import mlp
from spec.contract import Case, Family
from tests.spec.fifty_digits import EPS, Matrix, Vjp, agrees, disagreements, drawn, exact, finite, mp, small

#: Pre-activations at which implementations go wrong: the kink, and values near it.
HARD = (0.0, -0.0, 5e-324, -5e-324, 1e-300, -1e-300, 1e-17, -1e-17, 1.0, -1.0, 1e300, -1e300)


def relu(z: Any) -> Any:
    return z if z > 0 else mp.zero


def slope(z: Any) -> Any:
    """The derivative of relu by a difference that does not cross 0; 0 at 0."""
    step = abs(z) / 2
    return (relu(z + step) - relu(z - step)) / (2 * step) if z != 0 else mp.zero


def mlp_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    input, hidden_weights, (hidden_bias,), output_weights, (output_bias,) = (exact(tensor) for tensor in inputs)
    g = exact(cotangents[0])
    batch, features = range(inputs[0].shape[0]), range(inputs[0].shape[1])
    units, outputs = range(len(hidden_bias)), range(len(output_bias))

    z = [[mp.fsum(input[b][f] * hidden_weights[h][f] for f in features) + hidden_bias[h] for h in units] for b in batch]
    hidden = [[relu(value) for value in row] for row in z]
    d_z = [[mp.fsum(g[b][o] * output_weights[o][h] for o in outputs) * slope(z[b][h]) for h in units] for b in batch]
    return {
        "pre_activations": z,
        "hidden": hidden,
        "output": [
            [mp.fsum(hidden[b][h] * output_weights[o][h] for h in units) + output_bias[o] for o in outputs]
            for b in batch
        ],
        "d_input": [[mp.fsum(d_z[b][h] * hidden_weights[h][f] for h in units) for f in features] for b in batch],
        "d_hidden_weights": [[mp.fsum(d_z[b][h] * input[b][f] for b in batch) for f in features] for h in units],
        "d_hidden_bias": [[mp.fsum(d_z[b][h] for b in batch) for h in units]],
        "d_output_weights": [[mp.fsum(g[b][o] * hidden[b][h] for b in batch) for h in units] for o in outputs],
        "d_output_bias": [[mp.fsum(g[b][o] for b in batch) for o in outputs]],
    }


@pytest.mark.parametrize("value_family", finite(mlp.OPERATOR), ids=lambda family: family.name)
@pytest.mark.parametrize("mlp_case", small(mlp.OPERATOR), ids=lambda case: case.name)
def test_the_law_is_right(mlp_case: Case, value_family: Family) -> None:
    units = disagreements(mlp.OPERATOR, mlp_exactly, *drawn(mlp.OPERATOR, mlp_case, value_family), mlp.vjp)
    assert agrees(units), units


def test_each_element_is_right_where_it_is_hard() -> None:
    # One unit with weights of 1: output and d_input are relu and its slope, with all their digits.
    input = torch.tensor(HARD, dtype=torch.float64)[:, None]
    one, zero = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    inputs = (input, one, zero, one, zero)
    (output,) = mlp.forward(*inputs)
    d_input = mlp.vjp(inputs, (torch.ones_like(output),))[0]
    for value, (actual,), (gradient,) in zip(HARD, exact(output), exact(d_input), strict=True):
        assert abs(actual - relu(mp.mpf(value))) <= EPS * abs(mp.mpf(value)), value
        assert abs(gradient - slope(mp.mpf(value))) <= EPS, value


def without_a_mask(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The hidden bias as if relu were the identity."""
    d_input, d_hidden_weights, _, *others = mlp.vjp(inputs, cotangents)
    return d_input, d_hidden_weights, (cotangents[0] @ inputs[3]).sum(0), *others


def with_the_bias_of_one_row(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The output bias gets the cotangent of the first row alone."""
    *others, _ = mlp.vjp(inputs, cotangents)
    return *others, cotangents[0][0]


def with_slope_1_at_the_kink(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """relu'(0) = 1: a dead network learns."""
    input, hidden_weights, hidden_bias, *others = inputs
    return mlp.vjp((input, hidden_weights, hidden_bias + 5e-324, *others), cotangents)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (without_a_mask, "normal"),
        (without_a_mask, "dead-layer"),
        (with_the_bias_of_one_row, "normal"),
        (with_slope_1_at_the_kink, "zero-pre-activations"),
    ],
)
def test_a_wrong_gradient_is_rejected(wrong: Vjp, name: str) -> None:
    call = drawn(mlp.OPERATOR, mlp.OPERATOR.case("small"), mlp.OPERATOR.family(name))
    assert not agrees(disagreements(mlp.OPERATOR, mlp_exactly, *call, wrong))
