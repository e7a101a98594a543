"""A gradient that is wrong where a row is largest alone: the failure names the maximum."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally

SOFTMAX = operator("softmax")
SAID = "only the largest elements of rows are wrong: if a maximum is subtracted, detach it"


def _through_the_maximum(x: Tensor, dim: int = -1) -> Tensor:
    powers = (x - x.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)


def _with_wrong(places: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """A softmax whose gradient is wrong in some elements."""

    def function(x: Tensor, dim: int = -1) -> Tensor:
        y = x * 1
        if y.requires_grad:
            y.register_hook(lambda grad: torch.where(places(x), grad + 0.1, grad))
        return torch.softmax(y, dim)

    return function


def _reason(function: Callable[..., Tensor], dtype: torch.dtype, **sizes: int) -> str:
    scenario = Scenario(tuple({**dict(Scenario.of(SOFTMAX.case("small")).sizes), **sizes}.items()))
    with pytest.raises(Failure) as failure:
        Tally(Subject(SOFTMAX, "candidate", "cpu", dtype, function)).run(scenario)
    return str(failure.value)


def test_a_softmax_through_whose_maximum_autograd_goes() -> None:
    assert SAID in _reason(_through_the_maximum, torch.bfloat16, batch=64, features=256)


def test_wrong_elements_that_are_not_the_largest_are_not_put_down_to_it() -> None:
    largest = _with_wrong(lambda x: x == x.amax(-1, keepdim=True))
    assert SAID in _reason(largest, torch.float32, batch=8, features=64)
    smallest = _with_wrong(lambda x: x == x.amin(-1, keepdim=True))
    assert SAID not in _reason(smallest, torch.float32, batch=8, features=64)
    first = _with_wrong(lambda x: torch.arange(x.numel()).reshape(x.shape) == 0)
    assert SAID not in _reason(first, torch.float32, batch=1, features=2), "one of two: by chance"
