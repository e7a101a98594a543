"""MLP's gradient, derived by computer algebra, is the one of `spec.mlp`.

sympy differentiates a network of two features, two hidden units, two outputs and two rows, on each side of every kink,
and shows that the docstring's products of matrices are identical to the result. Then the derived gradient is compared
with the code in numbers.
"""

from __future__ import annotations

import itertools
import math

import pytest
import sympy
import torch

from spec import mlp
from spec.contract import Draw

TWO = range(2)
NAMES = ("input", "hidden_weights", "hidden_bias", "output_weights", "output_bias")


def matrix(name: str, rows: int = 2) -> sympy.Matrix:
    return sympy.Matrix(rows, 2, lambda i, j: sympy.Symbol(f"{name}_{i}{j}", real=True))


input, hidden_weights, output_weights, g = (matrix(name) for name in ("x", "w", "v", "g"))
hidden_bias, output_bias = matrix("b", 1), matrix("c", 1)
ARGUMENTS = (input, hidden_weights, hidden_bias, output_weights, output_bias)

#: Which hidden units are active, row by row: all 16 sides of the four kinks.
SIDES = [sympy.Matrix(2, 2, side) for side in itertools.product((0, 1), repeat=4)]


def rows_of(vector: sympy.Matrix) -> sympy.Matrix:
    """The vector once for each row of the batch."""
    return sympy.Matrix.vstack(vector, vector)


def derived(side: sympy.Matrix) -> dict[str, sympy.Matrix]:
    """The gradient of <g, output>, by sympy. On one side of a kink relu is a multiplication by 0 or 1."""
    hidden = (input * hidden_weights.T + rows_of(hidden_bias)).multiply_elementwise(side)
    output = hidden * output_weights.T + rows_of(output_bias)
    loss = sum(g[i, j] * output[i, j] for i in TWO for j in TWO)
    return {
        name: argument.applyfunc(lambda x: sympy.diff(loss, x)) for name, argument in zip(NAMES, ARGUMENTS, strict=True)
    }


def stated(side: sympy.Matrix) -> dict[str, sympy.Matrix]:
    """The gradient as the docstring of `spec.mlp` states it."""
    hidden = (input * hidden_weights.T + rows_of(hidden_bias)).multiply_elementwise(side)
    d_hidden = g * output_weights
    d_z = d_hidden.multiply_elementwise(side)
    ones = sympy.ones(1, 2)
    return {
        "input": d_z * hidden_weights,
        "hidden_weights": d_z.T * input,
        "hidden_bias": ones * d_z,
        "output_weights": g.T * hidden,
        "output_bias": ones * g,
    }


def identical(left: sympy.Matrix, right: sympy.Matrix) -> bool:
    return (left - right).expand() == sympy.zeros(*left.shape)


@pytest.mark.parametrize("side", SIDES, ids=lambda side: "".join(str(x) for x in side))
def test_the_stated_gradient_is_the_derived_one(side: sympy.Matrix) -> None:
    found, said = derived(side), stated(side)
    assert all(identical(found[name], said[name]) for name in NAMES)


def test_a_wrong_formula_is_not_identical() -> None:
    side = SIDES[6]
    assert not identical(derived(side)["input"], g * output_weights * hidden_weights)  # no mask
    assert not identical(derived(side)["output_weights"], stated(SIDES[15])["output_weights"])  # z for relu(z)
    assert not identical(derived(side)["hidden_weights"], stated(side)["hidden_weights"].T)


def test_relu_has_no_slope_at_0_and_the_contract_says_0() -> None:
    z, h = sympy.symbols("z h", real=True)
    quotient = sympy.Max(z, 0) / z
    assert sympy.limit(quotient.subs(z, h), h, 0, "+") == 1
    assert sympy.limit(quotient.subs(z, h), h, 0, "-") == 0
    one, zero = torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    gradients = mlp.vjp((zero, one, zero[0], one, zero[0]), (one,))
    assert [gradient.item() for gradient in gradients] == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_the_code_computes_the_derived_gradient() -> None:
    draw = Draw(0)
    seen = set()
    for _ in range(50):
        tensors = [draw.normal(argument.shape) for argument in (*ARGUMENTS, g)]
        numbers = dict(
            zip(
                [x for m in (*ARGUMENTS, g) for x in m], torch.cat([t.flatten() for t in tensors]).tolist(), strict=True
            )
        )
        x, w, b, v, c, cotangent = tensors
        inputs = (x, w, b[0], v, c[0])
        active = (mlp.intermediates(*inputs)["pre_activations"] > 0).int().flatten().tolist()
        seen.add(tuple(active))
        for (name, expected), actual in zip(
            derived(sympy.Matrix(2, 2, active)).items(), mlp.vjp(inputs, (cotangent,)), strict=True
        ):
            for value, formula in zip(actual.flatten().tolist(), expected, strict=True):
                assert math.isclose(value, formula.subs(numbers), rel_tol=1e-12, abs_tol=1e-13), name
    assert len(seen) > 8
