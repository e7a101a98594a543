"""The LSTM and GRU cells in 50-digit scalar arithmetic: the contracts, in float64, are right to a few roundings.

Nothing here is shared with `spec`. mpmath differentiates the part after the products numerically, so that no formula of
the closed forms is repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from spec import gru_cell, lstm_cell
from spec.contract import Case, Family, Operator
from tests.spec.fifty_digits import Exactly, Matrix, Row, Vjp, agrees, disagreements, drawn, exact, finite, mp, small

LSTM, GRU = lstm_cell.OPERATOR, gru_cell.OPERATOR
#: Everything that one element of the state depends on, to its outputs.
Element = Callable[..., Row]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def product(x: Matrix, weight: Matrix, bias: Row) -> Matrix:
    """x @ weight.T + bias."""
    return [
        [mp.fsum([a * b for a, b in zip(row, w, strict=True)] + [c]) for w, c in zip(weight, bias, strict=True)]
        for row in x
    ]


def times(x: Matrix, y: Matrix) -> Matrix:
    """x @ y."""
    return [[mp.fsum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*y, strict=True)] for row in x]


def turned(x: Matrix) -> Matrix:
    return [list(column) for column in zip(*x, strict=True)]


def summed(x: Matrix) -> Matrix:
    return [[mp.fsum(column) for column in zip(*x, strict=True)]]


def slopes(element: Element, arguments: Row, cotangents: Row) -> Row:
    """The derivative of <cotangents, outputs> of one element by each of its arguments, numerically."""

    def weighted(*given: Any) -> Any:
        return mp.fsum(g * y for g, y in zip(cotangents, element(*given), strict=True))

    count = len(arguments)
    return [mp.diff(weighted, tuple(arguments), tuple(int(i == j) for j in range(count))) for i in range(count)]


def columns(arguments: Matrix, size: int) -> Matrix:
    """One row of the batch, laid out as the columns of the gates: element j of part k at k size + j."""
    return [[arguments[j][k] for k in range(len(arguments[0])) for j in range(size)]]


def lstm_element(z_i: Any, z_f: Any, z_k: Any, z_o: Any, c: Any) -> Row:
    """(new_h, new_cell)."""
    new_cell = sigmoid(z_f) * c + sigmoid(z_i) * mp.tanh(z_k)
    return [sigmoid(z_o) * mp.tanh(new_cell), new_cell]


def lstm_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    x, h, c, w_ih, w_hh, (b_ih,), (b_hh,) = (exact(tensor) for tensor in inputs)
    g_h, g_c = (exact(tensor) for tensor in cotangents)
    of_input, of_state = product(x, w_ih, b_ih), product(h, w_hh, b_hh)
    gates = [[a + s for a, s in zip(*rows, strict=True)] for rows in zip(of_input, of_state, strict=True)]
    rows, size = range(len(x)), range(len(c[0]))
    z = [[[gates[b][k * len(size) + j] for k in range(4)] for j in size] for b in rows]
    made = [[lstm_element(*z[b][j], c[b][j]) for j in size] for b in rows]
    d = [[slopes(lstm_element, [*z[b][j], c[b][j]], [g_h[b][j], g_c[b][j]]) for j in size] for b in rows]
    d_gates = [columns([each[:4] for each in d[b]], len(size))[0] for b in rows]
    activations = {
        "input_gate": (0, sigmoid),
        "forget_gate": (1, sigmoid),
        "candidate": (2, mp.tanh),
        "output_gate": (3, sigmoid),
    }
    return {
        "gates": gates,
        **{name: [[act(z[b][j][k]) for j in size] for b in rows] for name, (k, act) in activations.items()},
        "new_h": [[new_h for new_h, _ in row] for row in made],
        "new_cell": [[new_cell for _, new_cell in row] for row in made],
        "d_input": times(d_gates, w_ih),
        "d_old_h": times(d_gates, w_hh),
        "d_old_cell": [[each[4] for each in row] for row in d],
        "d_w_ih": times(turned(d_gates), x),
        "d_w_hh": times(turned(d_gates), h),
        "d_b_ih": summed(d_gates),
        "d_b_hh": summed(d_gates),
    }


def gru_element(a_r: Any, a_z: Any, a_n: Any, s_r: Any, s_z: Any, s_n: Any, h: Any) -> Row:
    """(new_h,)."""
    z, n = sigmoid(a_z + s_z), mp.tanh(a_n + sigmoid(a_r + s_r) * s_n)
    return [(1 - z) * n + z * h]


def gru_exactly(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """Every step, output and gradient, by loops over scalars."""
    x, h, w_ih, w_hh, (b_ih,), (b_hh,) = (exact(tensor) for tensor in inputs)
    g = exact(cotangents[0])
    of_input, of_state = product(x, w_ih, b_ih), product(h, w_hh, b_hh)
    rows, size = range(len(x)), range(len(h[0]))
    parts = [
        [[row[k * len(size) + j] for row in (of_input[b], of_state[b]) for k in range(3)] for j in size] for b in rows
    ]
    d = [[slopes(gru_element, [*parts[b][j], h[b][j]], [g[b][j]]) for j in size] for b in rows]
    d_input, d_state = (
        [columns([each[part] for each in d[b]], len(size))[0] for b in rows] for part in (slice(3), slice(3, 6))
    )
    r, z = ([[sigmoid(p[k] + p[k + 3]) for p in row] for row in parts] for k in (0, 1))
    return {
        "of_input": of_input,
        "of_state": of_state,
        "reset_gate": r,
        "update_gate": z,
        "candidate": [[mp.tanh(p[2] + r[b][j] * p[5]) for j, p in enumerate(parts[b])] for b in rows],
        "new_h": [[gru_element(*parts[b][j], h[b][j])[0] for j in size] for b in rows],
        "d_input": times(d_input, w_ih),
        "d_old_h": [[p + d[b][j][6] for j, p in enumerate(row)] for b, row in enumerate(times(d_state, w_hh))],
        "d_w_ih": times(turned(d_input), x),
        "d_w_hh": times(turned(d_state), h),
        "d_b_ih": summed(d_input),
        "d_b_hh": summed(d_state),
    }


EXACTLY: dict[str, Exactly] = {"lstm_cell": lstm_exactly, "gru_cell": gru_exactly}
#: Weights of 30 and biases of 16 take digits of a product. The contracts are not to blame for what float64 loses there.
DEAR = ("saturated", "opposite-biases")
CALLS = [
    pytest.param(cell, case, family, id=f"{cell.name}-{case.name}-{family.name}")
    for cell in (LSTM, GRU)
    for case in small(cell)
    for family in finite(cell)
    if family.name not in DEAR
]


@pytest.mark.parametrize(("cell", "cell_case", "value_family"), CALLS)
def test_the_law_is_right(cell: Operator, cell_case: Case, value_family: Family) -> None:
    units = disagreements(cell, EXACTLY[cell.name], *drawn(cell, cell_case, value_family), cell.vjp)
    assert agrees(units), units


def without_the_kept_state(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradient of the GRU's state without what the update gate keeps."""
    d_input, d_old_h, *others = GRU.vjp(inputs, cotangents)
    return d_input, d_old_h - cotangents[0] * GRU.intermediates(*inputs)["update_gate"], *others


def without_the_forget_gate(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradient of the LSTM's cell as if the forget gate were open."""
    d_input, d_old_h, d_old_cell, *others = LSTM.vjp(inputs, cotangents)
    return d_input, d_old_h, d_old_cell / LSTM.intermediates(*inputs)["forget_gate"], *others


@pytest.mark.parametrize(("cell", "wrong"), [(GRU, without_the_kept_state), (LSTM, without_the_forget_gate)])
def test_a_wrong_gradient_is_rejected(cell: Operator, wrong: Vjp) -> None:
    call = drawn(cell, cell.case("small"), cell.family("normal"))
    assert not agrees(disagreements(cell, EXACTLY[cell.name], *call, wrong))
