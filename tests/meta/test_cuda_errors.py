"""A launch that CUDA refuses is the fault of the call that made it. The runtime is played here: no GPU is needed."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from harness.discovery import operator
from harness.errors import Failure
from harness.executing import cuda_errors, runner
from harness.judging.scenario import realise
from harness.judging.scenarios import ordinary
from harness.judging.subject import Subject
from tests.zoo.honest.lltm import Outputs, plain, with_gradient


class Runtime:
    """Keeps the last error, as CUDA does; `refuse` is a launch that fails."""

    def __init__(self) -> None:
        self._code = 0
        self._text = ctypes.create_string_buffer(b"invalid argument")

    def refuse(self) -> None:
        self._code = 1

    def cudaGetLastError(self) -> int:
        code, self._code = self._code, 0
        return code

    def cudaGetErrorString(self, _: int) -> int:
        return ctypes.addressof(self._text)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    found = Runtime()
    monkeypatch.setattr(cuda_errors, "runtime", lambda: found)
    return found


def _called(function: Any, device: str = "cuda") -> None:
    subject = Subject(operator("lltm"), "mine", device, torch.float32, function)
    scenario = ordinary(subject.operator)[0]
    call = realise(subject.operator, scenario, torch.float32)
    for tensor in call.inputs:
        tensor.requires_grad_()
    subject.gradients(call, subject.outputs(call, scenario), scenario)


def test_the_call_that_left_it_is_blamed(runtime: Runtime) -> None:
    def in_forward(*inputs: torch.Tensor) -> Outputs:
        runtime.refuse()
        return plain(*inputs)

    with pytest.raises(Failure, match="forward raised LeftBehind: CUDA refused a launch") as found:
        _called(in_forward)
    assert "launch («invalid argument») and" in str(found.value)
    assert "an empty tensor needs no launch" in str(found.value)
    _called(in_forward, device="cpu")


def test_in_backward_too(runtime: Runtime) -> None:
    def refused(g: torch.Tensor) -> torch.Tensor:
        runtime.refuse()
        return g

    with pytest.raises(Failure, match="backward raised LeftBehind: CUDA refused a launch"):
        _called(lambda *inputs: plain(with_gradient(inputs[0], refused), *inputs[1:]))


def test_what_was_left_before_is_not_of_this_call(runtime: Runtime) -> None:
    runtime.refuse()
    _called(plain)


def test_the_process_of_a_candidate_says_it(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    there = runner.Runner()
    monkeypatch.setattr(there, "cuda_errors", cuda_errors)
    there.device = torch.device("cuda")

    def refused(_: float) -> torch.Tensor:
        runtime.refuse()
        return torch.ones(1)

    there.function = refused
    request = {"arguments": [{"value": 1.0}], "named": {}, "held": False, "threads": None, "steps": []}
    with pytest.raises(cuda_errors.LeftBehind, match="CUDA refused a launch"):
        there.called({**request, "inference": False, "grad": True}, {})


def test_without_the_library_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_errors, "runtime", lambda: None)
    _called(plain)
