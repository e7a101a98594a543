"""For a wrong result, the first wrong step is named if the steps of the candidate are visible."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.executing.runner import StepRecorder
from harness.judging.divergence import first_divergence
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from tests.zoo import registry as zoo

zoo.load()


def _sentence(function: Callable[..., Any], operator: str = "lltm", dtype: torch.dtype = torch.float32) -> str:
    subject = Subject(discovery.operator(operator), "candidate", "cpu", dtype, function)
    return first_divergence(subject, smallest(subject.operator))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("lltm-math-BiasForgotten", "gates is the first step that comes out wrong: aten.mm gives it"),
        ("lltm-math-HardSigmoid", "input_gate is the first step that comes out wrong: aten.hardsigmoid gives it"),
        ("lltm-math-EluHalfAlpha", "candidate is the first step that comes out wrong: aten.elu gives it, off by 0.2"),
        ("lltm-math-ReluCandidate", "candidate is the first step that comes out wrong: aten.relu gives it"),
        ("lltm-math-NoOldCell", "candidate come out right; the error is in new_cell or later"),
        ("lltm-math-NoTanh", "candidate, new_cell come out right; the error is in what comes after, from aten.mul on"),
        ("lltm-gaming-Tf32Product", "gates is the first step that comes out wrong"),
        (
            "mlp-math-LeakyRelu",
            "pre_activations comes out right; hidden is the first step that comes out wrong: aten.leaky",
        ),
        ("mlp-math-NoRelu", "pre_activations comes out right; the error is in hidden or later"),
    ],
)
def test_the_first_wrong_step_is_named(fault: str, sentence: str) -> None:
    (found,) = [one for one in zoo.FAULTS if one.id == fault]
    assert sentence in _sentence(found.function, found.operator)
    cell = zoo.judged(found.function, found.caught_by, found.dtype, found.operator)
    assert sentence in cell.reason


@pytest.mark.parametrize("backend", ["python-autograd", "python-manual-backward", "aten-cpp"])
def test_of_a_right_function_no_step_is_called_wrong(backend: str) -> None:
    """In half types too, where a step computed in float32 has another value than one that is not."""
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        said = _sentence(discovery.load_function("lltm", backend, "cpu"), dtype=dtype)
        assert "gates" in said
        assert "wrong" not in said


def test_steps_are_seen_where_the_compiler_of_torch_is_imported() -> None:
    importlib.import_module("torch._dynamo")
    with StepRecorder({(2, 3)}) as recorder:
        torch.ones(2, 2) @ torch.ones(2, 3)
    assert [seen.operation for seen in recorder.seen] == ["aten.ones", "aten.mm"]


def test_a_result_is_no_attempt_at_a_step() -> None:
    """x - logsumexp(x) lies near x - max(x) where one element outweighs the others, and is no attempt at it."""

    def by_sum(input: Tensor) -> Tensor:
        return input - torch.logsumexp(input, -1, keepdim=True)

    log_softmax = discovery.operator("log_softmax")
    subject = Subject(log_softmax, "candidate", "cpu", torch.float32, by_sum)
    scenario = Scenario(sizes=(("batch", 12), ("features", 5)), values="shifted")
    assert "shifted is the first step" not in first_divergence(subject, scenario)


def test_what_shows_no_step_gets_no_sentence() -> None:
    def empty(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros_like(old_h), torch.zeros_like(old_cell)

    def raises(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        raise ValueError("no")

    assert _sentence(empty) == ""
    (far_off,) = [fault for fault in zoo.FAULTS if fault.id == "lltm-math-SwappedConcatenation"]
    assert _sentence(far_off.function) == ""
    assert _sentence(raises) == ""
