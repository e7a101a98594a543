"""Faults that only a GPU shows, each noticed by the property meant for it; without a GPU there is nothing to run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from backends.base import CUDA
from harness.discovery import operator
from harness.judge import FAIL, PASS, judge
from harness.properties import all_properties
from harness.subject import Subject
from tests.meta.honest.lltm import Outputs, plain

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def honest(*inputs: Tensor) -> Outputs:
    """The plain cell."""
    return plain(*inputs)


def looks_at_a_value(*inputs: Tensor) -> Outputs:
    """Reads one number of the bias on the host, and makes nothing of it."""
    inputs[2].flatten()[0].item()
    return plain(*inputs)


class _WaitsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        torch.cuda.synchronize()
        return g


def waits_in_backward(*inputs: Tensor) -> Outputs:
    """Backward waits until the whole GPU is idle."""
    first, *rest = inputs
    outputs: Outputs = plain(_WaitsInBackward.apply(first), *rest)
    return outputs


def on_the_default_stream(*inputs: Tensor) -> Outputs:
    """Launches on the default stream, whichever is current."""
    with torch.cuda.stream(torch.cuda.default_stream()):
        return plain(*inputs)


def on_the_first_device(*inputs: Tensor) -> Outputs:
    """Makes its result on device 0, wherever the inputs are, and copies it to them."""
    home = [tensor.to("cuda:0") for tensor in inputs]
    new_h, new_cell = plain(*home)
    current = torch.device("cuda", torch.cuda.current_device())
    return new_h.to(current), new_cell.to(current)


@torch.library.custom_op("lltm_gpu_faults::first_bias", mutates_args=())
def _first_bias(bias: Tensor) -> Tensor:
    """The bias of the first call by a copy through the host, which a graph replays as it was then."""
    if torch.cuda.is_current_stream_capturing():
        return _KEPT[-1].clone()
    _KEPT.append(bias.clone())
    return bias.clone()


_KEPT: list[Tensor] = []


@_first_bias.register_fake
def _(bias: Tensor) -> Tensor:
    return torch.empty_like(bias)


_first_bias.register_autograd(lambda ctx, g: g)


def bias_of_an_earlier_call(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """What a graph captures is the bias of the call before it."""
    return plain(input, weights, torch.ops.lltm_gpu_faults.first_bias(bias), old_h, old_cell)


FAULTS = [
    (looks_at_a_value, "no-waiting", "forward returned when the GPU had done all"),
    (waits_in_backward, "no-waiting", "backward returned when the GPU had done all"),
    (looks_at_a_value, "cuda-graphs", "capture in a CUDA graph raised"),
    (on_the_default_stream, "current-stream", "nan"),
    (bias_of_an_earlier_call, "reduce-overhead", "call [1-4], "),
]


def _judged(function: Callable[..., Any], property: str) -> Any:
    subject = Subject(operator("lltm"), function.__name__, CUDA, torch.float32, function)
    return judge(subject, all_properties()[property])


@pytest.mark.parametrize(("function", "property", "says"), FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_fault_is_noticed(function: Callable[..., Any], property: str, says: str) -> None:
    cell = _judged(function, property)
    assert cell.verdict == FAIL, cell
    assert re.search(says, cell.reason), cell.reason


@pytest.mark.parametrize("property", sorted({property for _, property, _ in FAULTS}))
def test_an_honest_cell_is_left_alone(property: str) -> None:
    assert _judged(honest, property).verdict == PASS


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_what_works_on_the_first_device_alone_is_noticed() -> None:
    cell = _judged(on_the_first_device, "other-device")
    assert cell.verdict == FAIL, cell
