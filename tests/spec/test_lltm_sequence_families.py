"""The families of LLTM over a sequence give the first step, or every step, the stated values, in every dtype."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spec.contract import DTYPES, Case, Draw
from spec.lltm_sequence import OPERATOR, forward, intermediates

#: Enough rows and units that every value is drawn.
CASE = OPERATOR.case("state-33")


def inputs_of(family: str, dtype: torch.dtype, case: Case = CASE) -> tuple[Tensor, ...]:
    """The inputs that a candidate of that dtype would see."""
    return tuple(x.to(dtype) for x in OPERATOR.family(family).make(case.sizes, Draw(0), dtype).values())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_first_gates_are_zero_and_the_next_are_not(dtype: torch.dtype) -> None:
    gates = intermediates(*inputs_of("zero-gates", dtype))["gates"]
    assert not gates[0].any()
    assert bool(gates[1].all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_first_gates_overflow_exp_and_nothing_else(dtype: torch.dtype) -> None:
    inputs = inputs_of("overflowing-exp", dtype)
    beyond = {torch.float64: 710.0, torch.float32: 89.0, torch.bfloat16: 89.0, torch.float16: 12.0}[dtype]
    first = intermediates(*inputs)["gates"][0].double().flatten().tolist()
    assert set(first) == {beyond, 2 * beyond, -beyond, -2 * beyond, 1.0}
    assert all(bool(output.isfinite().all()) for output in forward(*inputs))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_closed_gate_leaves_the_cell_as_it_was_in_every_step(dtype: torch.dtype) -> None:
    inputs = inputs_of("closed-gate", dtype)
    assert not intermediates(*inputs)["input_gate"].any()
    assert torch.equal(forward(*inputs)[1], inputs[4])


def test_what_is_not_finite_stays_in_its_rows() -> None:
    inputs = inputs_of("non-finite", torch.float64, OPERATOR.case("square"))
    h, c_T = forward(*inputs)
    assert not inputs[0].isfinite().all(dim=2).all(dim=0)[:3].any(), "each of three rows has one in some step"
    assert not c_T.isfinite().all(dim=1)[:3].any()
    assert bool(c_T[3:].isfinite().all())
    assert bool(h[:, 3:].isfinite().all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_negative_gates_are_all_negative_and_none_is_far_out(dtype: torch.dtype) -> None:
    gates = intermediates(*inputs_of("negative-gates", dtype))["gates"]
    assert -6 < float(gates.min()) < float(gates.max()) < 0
