"""gelu judged by PyTorch's own, which has an erf of its own on a processor with vectors."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS, Cell
from spec.contract import DTYPES

X = torch.randn(16, 256, generator=torch.Generator().manual_seed(0))


def scaled(x: Tensor) -> Tensor:
    """Values where erf is near -1, so that most digits of 1 + erf are lost."""
    return F.gelu(4 * x) * 1.5


def by_three_terms(x: Tensor) -> Tensor:
    """Wrong in float32: erf by formula 7.1.25 of Abramowitz and Stegun, whose error is up to 2.5e-5."""
    z = 4 * x * math.sqrt(0.5)
    t = 1 / (1 + 0.47047 * z.abs())
    erf = torch.copysign(1 - (0.3480242 * t - 0.0958798 * t**2 + 0.7478556 * t**3) * torch.exp(-z * z), z)
    return 4 * x * (1 + erf) * 0.75


def by_erf(x: Tensor) -> Tensor:
    """Right: the formula, by an erf that is exact to half a roundoff."""
    return 4 * x * (1 + torch.erf(4 * x * math.sqrt(0.5))) * 0.75


def _cell(function: object, name: str, dtype: torch.dtype) -> Cell:
    operator = derive_from(scaled, (X,)).operator
    return judge(Subject(operator, "it", "cpu", dtype, function), all_properties()[name])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["forward-parity", "vjp-parity", "sizes"])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [*((scaled, dtype) for dtype in DTYPES), (by_erf, torch.float32), (by_erf, torch.float64)],
)
def test_the_function_of_torch_is_right_and_so_is_its_formula(function: object, name: str, dtype: torch.dtype) -> None:
    cell = _cell(function, name, dtype)
    assert cell.verdict == PASS, cell.reason


def test_an_erf_of_three_terms_is_wrong() -> None:
    assert _cell(by_three_terms, "forward-parity", torch.float32).verdict == FAIL
