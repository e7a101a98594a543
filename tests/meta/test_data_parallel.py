"""Trained on halves of a batch by two processes, the LLTM module has the gradients of the whole batch.

What the ranks sum up is the contract's own VJP, with the sum over the batch made in two parts. So it is held within the
contract's allowance of the whole batch, which is for sums in any order and products in parts. That a rank gets the mean
and not the sum is a factor of 2, which rounds nothing.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.compare import compare
from harness.oracle import expected
from harness.scenario import realise
from spec.lltm import OPERATOR
from tests.meta.conftest import Run
from tests.meta.data_parallel import RATE, RIGHT, SCENARIO, WORLD, WRONG

NAMES = ("weights", "bias")


@pytest.fixture(scope="module")
def ranks(python: Run, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each process found of every run."""
    folder = tmp_path_factory.mktemp("ranks")
    run = python("-m", "tests.meta.data_parallel", folder)
    assert run.returncode == 0, run.stdout + run.stderr
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


def _hold(found: dict[str, Any]) -> bool:
    """Whether a rank's gradients, summed over ranks again, are those of the whole batch."""
    measure = expected(OPERATOR, SCENARIO, torch.float32)
    assert {f"gradient of {name}" for name in NAMES} <= measure.evident
    return all(compare(WORLD * found["gradients"][name], measure.gradients[name]).holds for name in NAMES)


@pytest.mark.parametrize("name", RIGHT)
def test_gradients_are_those_of_the_whole_batch(ranks: list[dict[str, Any]], name: str) -> None:
    assert all(_hold(rank[name]) for rank in ranks)


@pytest.mark.parametrize("name", RIGHT)
def test_after_a_step_both_ranks_have_the_same_parameters(ranks: list[dict[str, Any]], name: str) -> None:
    first, second = (rank[name] for rank in ranks)
    inputs = realise(OPERATOR, SCENARIO, torch.float32).inputs
    before = dict(zip((arg.name for arg in OPERATOR.inputs), inputs, strict=True))
    for parameter in NAMES:
        assert torch.equal(first["parameters"][parameter], second["parameters"][parameter])
        stepped = before[parameter] - RATE * first["gradients"][parameter]
        assert torch.equal(first["parameters"][parameter], stepped)  # half of a gradient rounds nothing


@pytest.mark.parametrize("name", WRONG)
def test_gradients_that_are_not_are_noticed(ranks: list[dict[str, Any]], name: str) -> None:
    assert not any(_hold(rank[name]) for rank in ranks)
