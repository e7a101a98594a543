"""LayerNorm's gradient, derived by computer algebra, is the one of `spec.layer_norm`."""

from __future__ import annotations

import pytest
import sympy

N = 3
x, w, b, g = (sympy.symbols(f"{name}_0:{N}", real=True) for name in "xwbg")
eps = sympy.Symbol("eps", positive=True)

mean = sum(x) / N
variance = sum((value - mean) ** 2 for value in x) / N
rstd = (variance + eps) ** sympy.Rational(-1, 2)
xhat = [(value - mean) * rstd for value in x]
loss = sum(g[i] * (xhat[i] * w[i] + b[i]) for i in range(N))
h = [g[i] * w[i] for i in range(N)]


def is_zero(difference: sympy.Expr) -> bool:
    """Whether it vanishes identically. It has only odd powers of rstd, so divided by rstd it is rational."""
    return sympy.cancel(sympy.powsimp(sympy.expand(difference / rstd))) == 0


def test_the_gradient_of_the_input_is_the_one_that_is_stated() -> None:
    i = 0  # all elements of a row enter alike
    stated = rstd * (h[i] - sum(h) / N - xhat[i] * sum(h[j] * xhat[j] for j in range(N)) / N)
    derived = sympy.diff(loss, x[i])
    assert is_zero(derived - stated)
    assert not is_zero(derived - stated - rstd * sum(h) / N), "leaving a term out is not noticed"


@pytest.mark.parametrize("i", range(N))
def test_the_gradients_of_weight_and_bias_are_the_ones_that_are_stated(i: int) -> None:
    assert sympy.expand(sympy.diff(loss, w[i]) - g[i] * xhat[i]) == 0
    assert sympy.diff(loss, b[i]) == g[i]
