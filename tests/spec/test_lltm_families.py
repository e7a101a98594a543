"""The families that solve for LLTM's pre-activations reach them exactly, in every dtype."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spec.contract import DTYPES, Draw
from spec.lltm import OPERATOR, intermediates

#: Enough rows and units that every value is drawn.
CASE = OPERATOR.case("state-33")


def steps_of(family: str, dtype: torch.dtype) -> dict[str, Tensor]:
    """The intermediates that a candidate of that dtype would see."""
    return intermediates(*(x.to(dtype) for x in OPERATOR.family(family).make(CASE.sizes, Draw(0), dtype).values()))


def values(tensor: Tensor) -> set[float]:
    return set(tensor.double().flatten().tolist())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zero_gates_are_zero(dtype: torch.dtype) -> None:
    assert values(steps_of("zero-gates", dtype)["gates"]) == {0.0}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tiny_gates_are_what_rounding_loses(dtype: torch.dtype) -> None:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    assert values(steps_of("tiny-gates", dtype)["gates"]) == {-eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_overflowing_gates_overflow_exp_and_nothing_else(dtype: torch.dtype) -> None:
    steps = steps_of("overflowing-exp", dtype)
    beyond = {torch.float64: 710.0, torch.float32: 89.0, torch.bfloat16: 89.0, torch.float16: 12.0}[dtype]
    assert values(steps["gates"]) == {beyond, 2 * beyond, -beyond, -2 * beyond, 1.0}
    assert torch.tensor(beyond, dtype=dtype).exp() == torch.inf
    assert torch.tensor(beyond - 1, dtype=dtype).exp() < torch.inf
    assert bool(steps["new_cell"].isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_closed_gate_leaves_the_cell_as_it_was(dtype: torch.dtype) -> None:
    steps = steps_of("closed-gate", dtype)
    assert values(steps["input_gate"]) == {0.0}
    old_cell = OPERATOR.family("closed-gate").make(CASE.sizes, Draw(0), dtype)["old_cell"].to(dtype)
    assert torch.equal(steps["new_cell"], old_cell)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_denormals_are_below_the_smallest_normal_number(dtype: torch.dtype) -> None:
    tensors = OPERATOR.family("denormals").make(CASE.sizes, Draw(0), dtype)
    for name in ("input", "old_cell"):
        found = tensors[name].to(dtype).double().abs()
        assert bool(((found > 0) & (found < torch.finfo(dtype).tiny)).any()), name


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_negative_gates_are_all_negative_and_none_is_far_out(dtype: torch.dtype) -> None:
    gates = steps_of("negative-gates", dtype)["gates"]
    assert -6 < float(gates.min()) < float(gates.max()) < 0
