"""Errors in units in the last place: the unit, the bins of errors, and the record of a cell."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.judging import ulps
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import PASS
from spec.contract import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1.0, 1.5, -3.0, 1000.0, 0.0, 2.0**-14])
def test_one_is_the_distance_to_the_next_number(dtype: torch.dtype, value: float) -> None:
    here = torch.tensor(value, dtype=dtype)
    exact = here.double()
    away = torch.nextafter(here, torch.tensor(torch.inf if value >= 0 else -torch.inf, dtype=dtype)).double()
    assert ulps.ulp(exact, dtype) == (away - exact).abs()


def test_among_subnormals_the_distance_stays() -> None:
    exact = torch.tensor([0.0, 2.0**-149, 2.0**-127, 2.0**-126], dtype=torch.float64)
    assert ulps.ulp(exact, torch.float32).tolist() == [2.0**-149] * 4


def test_each_error_falls_into_one_bin() -> None:
    errors = [0.0, 0.5, 0.51, 1.0, 1.01, 2.0, 1024.0, 1024.5, 1e9]
    exact = torch.ones(len(errors), dtype=torch.float64)
    found = ulps.histogram(torch.tensor(errors, dtype=torch.float64) * 2.0**-23, exact, torch.float32)
    assert found.tolist() == [2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2]
    assert len(found) == ulps.BINS


def test_what_the_dtype_cannot_hold_is_left_out() -> None:
    exact = torch.tensor([1.0, 1e6], dtype=torch.float64)
    assert ulps.histogram(torch.zeros(2, dtype=torch.float64), exact, torch.float16).sum() == 1


def _rounded_once(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> list[Tensor]:
    """LLTM computed in float64 and rounded once at its end: the best possible result."""
    given = (input, weights, bias, old_h, old_cell)
    function = discovery.operator("lltm").forward
    return [tensor.to(input.dtype) for tensor in function(*(tensor.double() for tensor in given))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cell_of_parity_has_the_histogram(dtype: torch.dtype) -> None:
    """If rounded once, no output has an error above half a unit; if rounded at each step, some have."""
    operator, properties = discovery.operator("lltm"), all_properties()
    once = Subject(operator, "once", "cpu", dtype, _rounded_once)
    stepwise = Subject(operator, "stepwise", "cpu", dtype, operator.forward)
    forward, vjp = (judge(once, properties[name]) for name in ("forward-parity", "vjp-parity"))
    usual = judge(stepwise, properties["forward-parity"])
    assert (forward.verdict, vjp.verdict, usual.verdict) == (PASS, PASS, PASS)
    (outputs,) = forward.figures["ulps"].values()
    assert outputs[0] > 1000
    assert outputs[1:] == [0] * (ulps.BINS - 1)
    assert vjp.figures["ulps"]["outputs"] == outputs
    assert sum(vjp.figures["ulps"]["gradients"]) > sum(outputs)
    assert sum(usual.figures["ulps"]["outputs"]) == outputs[0]
    assert usual.figures["ulps"]["outputs"][1] > 0
