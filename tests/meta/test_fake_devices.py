"""The property fake-devices: right ways to find a device pass it; the zoo judges most of them in another dtype.

The faults are in tests/zoo/faults/lltm/devices.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from harness.report.cell import NOT_RUN, PASS
from tests.meta.tiers import first_alone
from tests.zoo import registry as zoo
from tests.zoo.controls.lltm import scratch
from tests.zoo.honest.lltm import Outputs, plain

WAYS = [control for control in zoo.controls("lltm") if control.function.__module__ == scratch.__name__]


@pytest.mark.parametrize("control", first_alone(WAYS, count=3), ids=lambda control: control.name)
def test_right_ways_to_find_a_device(control: zoo.Control) -> None:
    cell = zoo.judged(control.function, "fake-devices", torch.float32)
    assert cell.verdict == PASS, cell
    refuses = control.name == "refuses_gpus"
    assert cell.figures["forward"].startswith("refused: NotImplementedError" if refuses else "done on cuda:1")
    assert cell.figures["backward"] == ("not done: forward refuses the device" if refuses else "done")


def by_new_tensor(*inputs: Tensor) -> Outputs:
    """PyTorch without a GPU would take another device than that of the input."""
    new_h, new_cell = plain(*inputs)
    return new_h + inputs[0].new_tensor([0.0]), new_cell


def by_a_number(*inputs: Tensor) -> Outputs:
    """PyTorch without a GPU would refuse the number."""
    new_h, new_cell = plain(*inputs)
    device = inputs[0].get_device() if inputs[0].is_cuda else "cpu"
    return new_h + torch.zeros(1, device=device), new_cell.to(device)


def through_the_cpu(*inputs: Tensor) -> Outputs:
    """A product is computed on the CPU: slow, and right."""
    new_h, new_cell = plain(*inputs)
    return (new_h.cpu() * 2).to(inputs[0].device) / 2, new_cell


@pytest.mark.parametrize("function", [by_new_tensor, by_a_number, through_the_cpu])
def test_more_right_ways(function: Callable[..., Outputs]) -> None:
    cell = zoo.judged(function, "fake-devices", torch.float32)
    assert (cell.verdict, cell.figures.get("backward")) == (PASS, "done"), cell


def asks_for_the_stream(*inputs: Tensor) -> Outputs:
    """Right, as far as can be told."""
    if inputs[0].is_cuda:
        torch.cuda.current_stream(inputs[0].device)
    return plain(*inputs)


def test_what_needs_a_gpu_is_not_judged() -> None:
    cell = zoo.judged(asks_for_the_stream, "fake-devices", torch.float32)
    assert cell.verdict == NOT_RUN
    assert "it calls what PyTorch answers only where there is a GPU" in cell.reason


def test_what_reads_values_is_left_to_fake_tensors() -> None:
    (fault,) = [fault for fault in zoo.faults("lltm") if fault.name == "NeedsData"]
    cell = zoo.judged(fault.function, "fake-devices", torch.float32)
    assert cell.verdict == NOT_RUN
    assert "it fails with fake tensors of the CPU too, see fake-tensors" in cell.reason


def test_a_function_without_a_name_cannot_be_judged() -> None:
    cell = zoo.judged(functools.partial(plain), "fake-devices", torch.float32)
    assert cell.verdict == NOT_RUN
    assert "the function cannot be found by name" in cell.reason
