"""Calls that want some gradients are compared with the one that wants all, and judged only where they differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import load_function, operator
from harness.errors import Failure
from harness.judging.like_whole import run_like_whole
from harness.judging.scenario import Scenario
from harness.judging.scenarios import proper_subsets, smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally

SEQUENCE = operator("lltm_sequence")
SUBSETS = proper_subsets(SEQUENCE)


@dataclass(frozen=True)
class Scaled:
    """The baseline, times a number where some inputs alone want a gradient, those named by their letters."""

    factor: float
    where: str

    def __call__(self, *inputs: Tensor) -> Any:
        found = load_function("lltm_sequence", "python-autograd", "cpu")(*inputs)
        wanted = "".join(letter for letter, tensor in zip("iwbhc", inputs, strict=True) if tensor.requires_grad)
        return tuple(self.factor * each for each in found) if wanted == self.where else found


def _tally(function: Callable[..., Any]) -> Tally:
    return Tally(Subject(SEQUENCE, "candidate", "cpu", torch.float32, function))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Scenario]:
    """The calls that are judged by their expected results."""
    found, run = list[Scenario](), Tally.run

    def noted(tally: Tally, scenario: Scenario, *rest: Any, **named: Any) -> None:
        found.append(scenario)
        run(tally, scenario, *rest, **named)

    monkeypatch.setattr(Tally, "run", noted)
    return found


def test_a_right_function_is_judged_by_its_own_call_alone(judged: list[Scenario]) -> None:
    tally = _tally(Scaled(1.0, ""))
    run_like_whole(tally, smallest(SEQUENCE), SUBSETS)
    assert tally.scenarios == len(SUBSETS) == 30
    assert judged == []


def test_a_subset_that_is_wrong_is_judged_by_its_expected_results(judged: list[Scenario]) -> None:
    with pytest.raises(Failure, match="only weights, h0 require grad"):
        run_like_whole(_tally(Scaled(0.99, "wh")), smallest(SEQUENCE), SUBSETS)
    assert [scenario.wanted for scenario in judged] == [("weights", "h0")]


def test_what_is_right_by_its_expected_results_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another formula for some gradients may round in another way; nothing fails by the comparison."""
    tally = _tally(Scaled(1.0, ""))
    monkeypatch.setattr("harness.judging.like_whole._are_near", lambda found, whole, part: False)
    run_like_whole(tally, smallest(SEQUENCE), SUBSETS[:3])
    assert tally.scenarios == 3


def test_where_the_whole_call_is_wrong_every_subset_is_judged() -> None:
    tally = _tally(Scaled(0.99, "iwbhc"))
    run_like_whole(tally, smallest(SEQUENCE), SUBSETS[:3])
    assert tally.evidence, "by expected results, which are right"


def test_a_function_that_raises_for_a_subset_fails() -> None:
    def raises(*inputs: Tensor) -> Any:
        if [tensor.requires_grad for tensor in inputs] == [False, False, True, False, False]:
            raise RuntimeError("not implemented")
        return Scaled(1.0, "")(*inputs)

    with pytest.raises(Failure, match="not implemented"):
        run_like_whole(_tally(raises), smallest(SEQUENCE), SUBSETS)
