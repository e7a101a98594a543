"""A gradient that is wrong where a dimension between rows and columns is 1, and only where rows differ by more than
their values: the sparsemax of entmax 1.0. A derived contract notices it without chance.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS
from museum.references.sparse import sparsemax, three_dimensions


class _Squeezes(torch.autograd.Function):
    """The number of elements in the support of a row loses a dimension of 1, and meets the other rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = sparsemax(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        g = g.masked_fill(y == 0, 0.0)
        mean = g.sum(-1) / (y > 0).sum(-1).to(y.dtype).squeeze()
        return torch.where(y != 0, g - mean.unsqueeze(-1), g)


def test_a_dimension_of_1_that_is_lost_is_noticed() -> None:
    contract = derive_from(sparsemax, three_dimensions(), "sparsemax").operator
    property = all_properties()["combinations"]
    cell = judge(Subject(contract, "squeezes", "cpu", torch.float32, _Squeezes.apply), property)
    assert cell.verdict == FAIL
    assert "gradient of x was" in cell.reason
    assert judge(Subject(contract, "right", "cpu", torch.float32, sparsemax), property).verdict == PASS
