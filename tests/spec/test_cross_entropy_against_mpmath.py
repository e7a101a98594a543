"""Cross-entropy in 50-digit scalar arithmetic: the contract, evaluated in float64, is right to a few roundings.

Nothing here is shared with `spec.cross_entropy`. mpmath differentiates the loss numerically, so that no formula of the
closed form is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from spec import cross_entropy
from spec.contract import Case, Family, Operator
from tests.spec.fifty_digits import Matrix, Row, Vjp, agrees, disagreements, drawn, exact, finite, mp, small

FORMS = cross_entropy.OPERATOR.every_form()
#: The label that is ignored, and the smoothing, of each form.
OPTIONS = {"mean": (-100, 0), "ignore-index": (-1, 0), "label-smoothing": (-100, mp.mpf(0.1))}


def log_softmax(row: Row) -> Row:
    total = mp.log(mp.fsum(mp.exp(x) for x in row))
    return [x - total for x in row]


def loss_of(rows: Sequence[Row], labels: list[int], ignored: int, smoothing: Any) -> Any:
    """The mean over the rows that count."""
    losses = []
    for row, label in zip(rows, labels, strict=True):
        if label != ignored:
            y = log_softmax(row)
            losses.append(-(1 - smoothing) * y[label] - smoothing * mp.fsum(y) / len(y))
    return mp.fsum(losses) / len(losses)


def exactly(form: Operator, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Matrix]:
    """The step, the output and the gradient, by loops over scalars."""
    rows, labels = exact(inputs[0]), inputs[1].tolist()
    loss = partial(loss_of, labels=labels, ignored=OPTIONS[form.form][0], smoothing=OPTIONS[form.form][1])

    def slope(b: int, c: int) -> Any:
        def moved(x: Any) -> Any:
            return loss([[*row[:c], x, *row[c + 1 :]] if k == b else row for k, row in enumerate(rows)])

        return mp.diff(moved, rows[b][c])

    g = mp.mpf(float(cotangents[0]))
    d_logits = [[g * slope(b, c) for c in range(len(rows[b]))] for b in range(len(rows))]
    return {"y": [log_softmax(row) for row in rows], "loss": [[loss(rows)]], "d_logits": d_logits}


SCENARIOS = [
    pytest.param(form, case, family, id=f"{form.form}-{case.name}-{family.name}")
    for form in FORMS
    for case in small(form)
    for family in finite(form)
]


@pytest.mark.parametrize(("form", "of_sizes", "of_values"), SCENARIOS)
def test_the_law_is_right(form: Operator, of_sizes: Case, of_values: Family) -> None:
    units = disagreements(form, partial(exactly, form), *drawn(form, of_sizes, of_values), form.vjp)
    assert agrees(units), units


def of_all_rows(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradient of the mean over all rows, ignored ones among them."""
    d_logits, none = FORMS[1].vjp(inputs, cotangents)
    labels = inputs[1]
    return d_logits * (labels != -1).sum() / len(labels), none


def of_the_label_alone(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The gradient of the sum of exponentials is left out."""
    d_logits, none = FORMS[1].vjp(inputs, cotangents)
    classes = torch.arange(d_logits.shape[1])
    return torch.where(inputs[1].unsqueeze(-1) == classes, d_logits, 0.0), none


@pytest.mark.parametrize("wrong", [of_all_rows, of_the_label_alone])
def test_a_wrong_gradient_is_rejected(wrong: Vjp) -> None:
    form = FORMS[1]
    inputs, cotangents = drawn(form, form.case("small"), form.family("normal"))
    inputs[1][0] = -1  # whatever was drawn, a row is ignored
    assert not agrees(disagreements(form, partial(exactly, form), inputs, cotangents, wrong))
