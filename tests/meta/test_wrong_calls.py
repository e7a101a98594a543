"""A wrong call that does no harm survives, whatever else is wrong; one that does harm is told with what it did."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from harness.judging.wrong_calls import elsewhere, wrong_calls
from harness.report.cell import FAIL, PASS
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, plain
from tests.zoo.registry import FAULTS, judged, load

NAME = "survives-wrong-calls"
load()


def test_a_function_that_checks_nothing_survives_and_does_not_refuse() -> None:
    """Each question has its own level: what torch itself refuses or broadcasts does no harm."""
    survives = judged(plain, NAME, torch.float32)
    assert survives.verdict == PASS, survives.reason
    assert survives.figures["wrong calls"]["accepted"] > 10
    assert judged(plain, "rejects-wrong-calls", torch.float32).verdict == FAIL


def test_a_wrong_function_that_does_no_harm_survives() -> None:
    found = judged(lambda *inputs: tuple(2 * y for y in plain(*inputs)), NAME, torch.float32)
    assert found.verdict == PASS, found.reason
    assert found.figures["right calls in between"] == "not judged: wrong anyway"


def test_values_that_differ_between_two_calls_alike_show_no_read() -> None:
    def noisy(*inputs: Tensor) -> Any:
        new_h, new_cell = plain(*inputs)
        return new_h + torch.rand_like(new_h), new_cell

    found = judged(noisy, NAME, torch.float32)
    assert found.verdict == PASS, found.reason


def test_results_of_a_call_with_a_tensor_without_values_are_not_compared() -> None:
    """F.linear on the CPU accepts a weight on the meta device, and returns uninitialised memory: docs/findings.md."""
    calls = count()

    def function(input: Tensor, weights: Tensor, *rest: Tensor) -> Any:
        if isinstance(weights, Tensor) and weights.device.type == "meta":
            anything = torch.full_like(rest[1], next(calls) % 2)  # twice the same, and another in between
            return anything, anything
        return plain(input, weights, *rest)

    found = judged(function, NAME, torch.float32)
    assert found.verdict == PASS, found.reason
    assert next(calls) == 2, "a call with grad, and one without"


def test_a_read_in_backward_is_noticed() -> None:
    class Reads(torch.autograd.Function):
        """The identity; its backward adds what follows its input in memory, times nothing."""

        @staticmethod
        def forward(ctx: Any, value: Tensor) -> Tensor:
            ctx.save_for_backward(value)
            return value.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            (value,) = ctx.saved_tensors
            return gradient + 0 * value.as_strided((1,), (1,), value.storage_offset() + value.numel())

    def function(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Any:
        is_wrong = isinstance(old_cell, Tensor) and isinstance(old_h, Tensor) and old_cell.shape != old_h.shape
        return plain(input, weights, bias, old_h, Reads.apply(old_cell) if is_wrong else old_cell)

    found = judged(function, NAME, torch.float32)
    assert found.verdict == FAIL
    assert "read memory outside its arguments: gradient of" in found.reason


def test_a_lost_grad_mode_is_noticed() -> None:
    (fault,) = (fault for fault in FAULTS if fault.name == "GradModeLostOnError")
    found = judged(fault.function, NAME, fault.dtype)
    assert found.verdict == FAIL
    assert "grad mode was False after a call with" in found.reason


class _Exits(Cell):
    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except Exception:
            raise SystemExit("enough") from None


def test_an_exit_is_noticed() -> None:
    found = judged(_Exits(), NAME, torch.float32)
    assert found.verdict == FAIL
    assert "ended the process, but should raise" in found.reason


@pytest.mark.parametrize("around", [float("nan"), 1.0])
def test_arguments_keep_their_values_inside_the_buffer(around: float) -> None:
    sizes = {"batch": 2, "input_features": 3, "state_size": 4}
    inputs = tuple(torch.randn(arg.shape_for(sizes)) for arg in OPERATOR.inputs)
    for call in wrong_calls(OPERATOR, sizes, inputs):
        for before, after in zip(call.inputs, call.within(around, 5).inputs, strict=True):
            if not isinstance(before, Tensor) or before.layout != torch.strided or before.device.type == "meta":
                assert after is before
                continue
            torch.testing.assert_close(after, before, rtol=0, atol=0)
            assert after.is_contiguous()
            storage = torch.empty(0, dtype=after.dtype).set_(after.untyped_storage())
            assert len(storage) == before.numel() + 10
            outside = torch.cat([storage[:5], storage[5 + before.numel() :]])
            filling = around if before.is_floating_point() or before.is_complex() or around == 1 else 7
            assert all(bool(value.isnan() if filling != filling else value == filling) for value in outside)


def test_on_a_gpu_all_tensors_are_on_the_cpu_in_one_call() -> None:
    inputs = (torch.zeros(2, 3), torch.zeros(3))
    assert not list(elsewhere(inputs)), "they are there already"
    with FakeTensorMode():
        (found,) = elsewhere(tuple(torch.zeros(tensor.shape, device="cuda") for tensor in inputs))
    assert [tensor.device.type for tensor in found.inputs] == ["cpu", "cpu"]
