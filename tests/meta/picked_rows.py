"""A contract with labels and a mask: each row of the input times the row of a table that its label names, where the
mask holds. It is no operator of the suite; it is here for inputs that are not real numbers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import Case, Family, Operator, TensorArg


def forward(input: Tensor, table: Tensor, labels: Tensor, mask: Tensor) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    return (torch.where(mask, input * table[labels], 0),)


def vjp(inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gradients of input and table; labels and mask have none."""
    input, table, labels, mask = inputs
    (g,) = cotangents
    kept = torch.where(mask, g, 0)
    chosen = F.one_hot(labels, table.shape[0]).to(input.dtype)
    return kept * table[labels], chosen.t() @ (kept * input), labels.new_empty(0), labels.new_empty(0)


def _case(name: str, batch: int, features: int, classes: int, *tags: str) -> Case:
    return Case(name, {"batch": batch, "features": features, "classes": classes}, "a test", frozenset(tags))


OPERATOR = Operator(
    name="picked_rows",
    inputs=(
        TensorArg("input", ("batch", "features")),
        TensorArg("table", ("classes", "features")),
        TensorArg("labels", ("batch",), differentiable=False, dtype=torch.int64, high="classes"),
        TensorArg("mask", ("batch", "features"), differentiable=False, dtype=torch.bool),
    ),
    outputs=(TensorArg("output", ("batch", "features")),),
    forward=forward,
    vjp=vjp,
    intermediates=lambda input, table, labels, mask: {"chosen": table[labels]},
    cases=(
        _case("small", 3, 4, 5, "size", "small"),
        _case("no-rows", 0, 4, 5, "size"),
        _case("usual", 64, 32, 10, "size", "benchmark"),
    ),
    families=(
        Family(
            "one-label",
            "all rows have the last label, so that one row of the table gets all gradients",
            lambda sizes, draw, _: {
                **OPERATOR.ordinary(sizes, draw),
                "labels": torch.full((sizes["batch"],), sizes["classes"] - 1),
            },
        ),
    ),
)
