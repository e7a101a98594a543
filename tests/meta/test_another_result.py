"""A failure says if the same call gives something else the next time, and blames nothing else then."""

from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally

SWIGLU = operator("swiglu")
STRIDED = Scenario.of(SWIGLU.case("small"), layouts=(("up", "strided"),))


class _Counts:
    """Wrong from the first call on, and by more in each."""

    calls = 0

    def __call__(self, gate: Tensor, up: Tensor) -> Tensor:
        self.calls += 1
        return torch.nn.functional.silu(gate) * up + self.calls


def _wrong(gate: Tensor, up: Tensor) -> Tensor:
    return torch.nn.functional.silu(gate) * up + 1


def _reason(function: Any) -> str:
    with pytest.raises(Failure) as failure:
        Tally(Subject(SWIGLU, "candidate", "cpu", torch.float32, function)).run(STRIDED)
    return str(failure.value)


def test_a_result_that_changes_is_said_to_change() -> None:
    reason = _reason(_Counts())
    assert "the same call again gives" in reason
    assert "strides" not in reason


def test_a_result_that_stays_is_not() -> None:
    assert "the same call again" not in _reason(_wrong)
