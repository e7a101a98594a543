"""LLTM's gradient, derived by computer algebra, is the one of `spec.lltm`.

The docstring's formulae are repeated below in symbols. sympy differentiates the forward pass and shows that they are
identical, on either branch of elu. Then the derived gradient is compared with the code in numbers.
"""

from __future__ import annotations

import math

import pytest
import sympy
import torch

from spec import lltm
from spec.contract import Draw

z_i, z_o, old_cell, g_h, g_c = sympy.symbols("z_i z_o old_cell g_h g_c", real=True)

#: sympy decides `z > 0` from the assumptions of the symbol, so each of these selects one branch of elu.
BRANCHES = {"positive": sympy.Symbol("z_k", positive=True), "not positive": sympy.Symbol("z_k", nonpositive=True)}


def sigmoid(z: sympy.Expr) -> sympy.Expr:
    return 1 / (1 + sympy.exp(-z))


def elu(z: sympy.Expr) -> sympy.Expr:
    return sympy.Piecewise((z, z > 0), (sympy.exp(z) - 1, True))


def derived(z_k: sympy.Symbol) -> dict[str, sympy.Expr]:
    """The gradient of g_h*new_h + g_c*new_cell, by sympy."""
    new_cell = old_cell + elu(z_k) * sigmoid(z_i)
    new_h = sympy.tanh(new_cell) * sigmoid(z_o)
    loss = g_h * new_h + g_c * new_cell
    return {
        "d_z_i": sympy.diff(loss, z_i),
        "d_z_o": sympy.diff(loss, z_o),
        "d_z_k": sympy.diff(loss, z_k),
        "d_old_cell": sympy.diff(loss, old_cell),
    }


def stated(z_k: sympy.Symbol) -> dict[str, sympy.Expr]:
    """The gradient as the docstring of `spec.lltm` states it."""
    i, o, k = sigmoid(z_i), sigmoid(z_o), elu(z_k)
    elu_slope = sympy.Piecewise((1, z_k > 0), (sympy.exp(z_k), True))
    new_cell = old_cell + k * i
    d_output_gate = g_h * sympy.tanh(new_cell)
    d_new_cell = g_h * o * (1 - sympy.tanh(new_cell) ** 2) + g_c
    d_candidate = d_new_cell * i
    d_input_gate = d_new_cell * k
    return {
        "d_z_i": d_input_gate * i * (1 - i),
        "d_z_o": d_output_gate * o * (1 - o),
        "d_z_k": d_candidate * elu_slope,
        "d_old_cell": d_new_cell,
    }


def identical(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Whether the difference, a rational function of exp(-z_i), exp(-z_o), exp(z_k), tanh(...), cancels to 0."""
    return sympy.cancel(left - right) == 0


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("name", ["d_z_i", "d_z_o", "d_z_k", "d_old_cell"])
def test_the_stated_gradient_is_the_derived_one(name: str, branch: str) -> None:
    z_k = BRANCHES[branch]
    assert identical(derived(z_k)[name], stated(z_k)[name])


def test_a_wrong_formula_is_not_identical() -> None:
    z_k = BRANCHES["not positive"]
    without_new_cells_cotangent = stated(z_k)["d_old_cell"].subs(g_c, 0)
    assert not identical(derived(z_k)["d_old_cell"], without_new_cells_cotangent)
    with_slope_1_below_0 = stated(z_k)["d_z_k"] / sympy.exp(z_k)
    assert not identical(derived(z_k)["d_z_k"], with_slope_1_below_0)


def test_elus_slope_at_0_is_1_from_both_sides() -> None:
    # With alpha = 1 this is no convention: elu is differentiable at 0, and 0 there is wrong.
    z, h = sympy.symbols("z h", real=True)
    quotient = (elu(z) - elu(sympy.Integer(0))) / z
    assert sympy.limit(quotient.subs(z, h), h, 0, "+") == 1
    assert sympy.limit(quotient.subs(z, h), h, 0, "-") == 1
    zero = torch.zeros(1, 1, dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.float64)
    d_bias = lltm.vjp((zero[:, :0], zero.expand(3, 1), zero.expand(3, 1)[:, 0], zero, zero), (0 * one, one))[2]
    assert d_bias.tolist() == [0.0, 0.0, 0.5]  # elu'(0) * sigmoid(0)


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_code_computes_the_derived_gradient(branch: str) -> None:
    draw, points = Draw(0), 50
    z = draw.normal((points, 3), 2.0)
    z[:, 2] = z[:, 2].abs() if branch == "positive" else -z[:, 2].abs()
    c, g_new_h, g_new_cell = (draw.normal((points, 1)) for _ in range(3))
    # Weights of [0 | identity] make the pre-activations the input, and their gradient that of the input.
    weights = torch.cat([torch.zeros(3, 1), torch.eye(3)], dim=1).to(torch.float64)
    inputs = (z, weights, torch.zeros(3, dtype=torch.float64), torch.zeros_like(c), c)
    d_gates, *_, d_old_cell = lltm.vjp(inputs, (g_new_h, g_new_cell))

    symbols = (z_i, z_o, BRANCHES[branch], old_cell, g_h, g_c)
    gradient = sympy.lambdify(symbols, list(derived(BRANCHES[branch]).values()), modules="math")
    for point, actual in zip(
        torch.cat([z, c, g_new_h, g_new_cell], dim=1).tolist(),
        torch.cat([d_gates, d_old_cell], dim=1).tolist(),
        strict=True,
    ):
        for value, expected in zip(actual, gradient(*point), strict=True):
            assert math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-13), point
