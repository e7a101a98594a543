"""LLTM over a sequence in 50-digit scalar arithmetic: the contract, in float64, is right to a few roundings a step.

Nothing here is shared with `spec.lltm_sequence`: the scan is a loop over scalars, and each gradient is the numerical
derivative of the whole scan, without a backward step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from spec import lltm, lltm_sequence
from spec.contract import Case, Draw, Family
from tests.spec.fifty_digits import EPS, ROUNDINGS, Matrix, Vjp, drawn, exact, finite, mp

OPERATOR = lltm_sequence.OPERATOR
#: The cases that are small enough for a derivative by every single input.
CASES = [OPERATOR.case(name) for name in ("small", "one-everything", "no-features")]


def sigmoid(z: Any) -> Any:
    return 1 / (1 + mp.exp(-z))


def elu(z: Any) -> Any:
    return z if z > 0 else mp.expm1(z)


def scan(input: list[Matrix], weights: Matrix, bias: Matrix, h0: Matrix, c0: Matrix) -> tuple[list[Matrix], Matrix]:
    """(h, c_T), by loops over scalars."""
    states, cell = [h0], [row[:] for row in c0]
    size = len(h0[0]) if h0 else 0
    for x in input:
        h = []
        for b, row in enumerate(cell):
            X = states[-1][b] + x[b]
            z = [mp.fdot(w, X) + bias[0][r] for r, w in enumerate(weights)]
            cell[b] = [row[s] + elu(z[2 * size + s]) * sigmoid(z[s]) for s in range(size)]
            h.append([mp.tanh(cell[b][s]) * sigmoid(z[size + s]) for s in range(size)])
        states.append(h)
    return states[1:], cell


def matrices(tensor: Tensor) -> list[Matrix]:
    """Each step as a matrix of 50-digit numbers."""
    return [exact(step) for step in tensor]


def derivatives(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> Iterator[tuple[str, Any, Any]]:
    """(name, index, derivative) of <cotangents, outputs> by every element of every input."""
    call = [matrices(inputs[0]), *(exact(tensor) for tensor in inputs[1:])]
    g_h, g_c = matrices(cotangents[0]), exact(cotangents[1])

    def weighted() -> Any:
        h, c_T = scan(*call)
        pairs = [*zip(h, g_h, strict=True), (c_T, g_c)]
        return mp.fsum(mp.fdot(y, g) for ys, gs in pairs for y, g in zip(ys, gs, strict=True))

    for arg, values in zip(OPERATOR.inputs, call, strict=True):
        for step, matrix in enumerate(values if arg.name == "input" else [values]):
            for r, row in enumerate(matrix):
                for k, was in enumerate(row):

                    def at(x: Any, row: Any = row, k: int = k) -> Any:
                        row[k] = x
                        return weighted()

                    index = (step, r, k) if arg.name == "input" else (k,) if arg.name == "bias" else (r, k)
                    yield arg.name, index, mp.diff(at, was)
                    row[k] = was


def roundings(
    inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...], vjp: Vjp = lltm_sequence.vjp
) -> dict[str, float]:
    """For each output and gradient the largest error, in roundings of its largest element or of 1, per step."""
    steps = max(len(inputs[0]), 1)
    h, c_T = scan(matrices(inputs[0]), *(exact(tensor) for tensor in inputs[1:]))
    found = lltm_sequence.forward(*inputs)
    pairs = {"h": [(x, y) for t, step in enumerate(h) for x, y in elements(found[0][t], step)]}
    pairs["c_T"] = elements(found[1], c_T)
    gradients = dict(zip((arg.name for arg in OPERATOR.inputs), vjp(inputs, cotangents), strict=True))
    for name, index, derivative in derivatives(inputs, cotangents):
        pairs.setdefault(f"d_{name}", []).append((mp.mpf(gradients[name][index].item()), derivative))
    return {
        name: float(max(abs(x - y) for x, y in both) / (EPS * steps * max(1, *(abs(y) for _, y in both))))
        for name, both in pairs.items()
    }


def elements(tensor: Tensor, matrix: Matrix) -> list[tuple[Any, Any]]:
    """(actual, expected) of every element."""
    rows = zip(exact(tensor), matrix, strict=True)
    return [pair for actual, expected in rows for pair in zip(actual, expected, strict=True)]


@pytest.mark.parametrize("value_family", finite(OPERATOR), ids=lambda family: family.name)
@pytest.mark.parametrize("sequence_case", CASES, ids=lambda case: case.name)
def test_the_law_is_right(sequence_case: Case, value_family: Family) -> None:
    found = roundings(*drawn(OPERATOR, sequence_case, value_family))
    assert all(units <= ROUNDINGS for units in found.values()), found


def truncated(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Backward as if the last step stood alone: every gradient is that of one cell."""
    input, weights, bias, h0, c0 = inputs
    h, c = lltm_sequence.forward(input[:-1], weights, bias, h0, c0)
    d_input, *others = lltm.vjp((input[-1], weights, bias, h[-1], c), (cotangents[0][-1], cotangents[1]))
    return torch.cat([torch.zeros_like(input[:-1]), d_input[None]]), *others


def without_the_last_cells_cotangent(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Backward as if only h had been used."""
    return lltm_sequence.vjp(inputs, (cotangents[0], torch.zeros_like(cotangents[1])))


@pytest.mark.parametrize("wrong", [truncated, without_the_last_cells_cotangent])
def test_a_wrong_gradient_is_rejected(wrong: Vjp) -> None:
    found = roundings(*drawn(OPERATOR, OPERATOR.case("small"), OPERATOR.family("normal")), wrong)
    assert any(units > ROUNDINGS for units in found.values())


def ordinary(name: str) -> tuple[Tensor, ...]:
    return tuple(OPERATOR.ordinary(OPERATOR.case(name).sizes, Draw(0)).values())


def test_one_step_is_the_cell() -> None:
    inputs = ordinary("one-step")
    of_cell = (inputs[0][0], *inputs[1:])
    (h, c_T), (new_h, new_cell) = lltm_sequence.forward(*inputs), lltm.forward(*of_cell)
    assert torch.equal(h[0], new_h)
    assert torch.equal(c_T, new_cell)
    g = tuple(torch.randn_like(y) for y in (new_h, new_cell))
    d_input, *others = lltm_sequence.vjp(inputs, (g[0][None], g[1]))
    for found, expected in zip((d_input[0], *others), lltm.vjp(of_cell, g), strict=True):
        assert torch.equal(found, expected)


def test_a_sequence_is_its_parts_one_behind_the_other() -> None:
    input, weights, bias, *state = ordinary("square")
    h, c_T = lltm_sequence.forward(input, weights, bias, *state)
    first, cell = lltm_sequence.forward(input[:2], weights, bias, *state)
    second, last = lltm_sequence.forward(input[2:], weights, bias, first[-1], cell)
    assert torch.equal(torch.cat([first, second]), h)
    assert torch.equal(last, c_T)


def test_no_steps_leave_the_state_alone() -> None:
    inputs = ordinary("no-steps")
    h, c_T = lltm_sequence.forward(*inputs)
    assert h.shape == (0, *inputs[3].shape)
    assert torch.equal(c_T, inputs[4])
    g = torch.randn_like(c_T)
    d_input, d_weights, d_bias, d_h0, d_c0 = lltm_sequence.vjp(inputs, (h, g))
    assert d_input.shape == inputs[0].shape
    assert not any(bool(d.any()) for d in (d_weights, d_bias, d_h0))
    assert torch.equal(d_c0, g)
