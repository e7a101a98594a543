"""The LLTM module has the gradients of the whole batch if two processes train it on halves of the batch.

The sum over the ranks is the contract's VJP, with the sum over the batch split in two parts. So the contract's
allowance for the whole batch applies, which covers sums in any order and products in parts. A rank gets the mean
instead of the sum: a factor of 2, which is exact.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.judging.compare import compare
from harness.judging.oracle import expected
from harness.judging.scenario import realise
from spec.lltm import OPERATOR
from tests.meta.conftest import Run
from tests.meta.data_parallel import BACKENDS, RATE, SCENARIO, WORLD, WRONG, right

NAMES = ("weights", "bias")
RUNS = pytest.mark.parametrize(("where", "name"), [(where, name) for where in BACKENDS for name in right(where)])


Ranks = list[dict[str, Any]]


def _found(folder: Path, run: subprocess.CompletedProcess[str]) -> Ranks:
    """The results of each process in every run."""
    assert run.returncode == 0, run.stdout + run.stderr
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.fixture(scope="module")
def on_cpu(python: Run, tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """Two processes that communicate by gloo."""
    folder = tmp_path_factory.mktemp("ranks")
    return _found(folder, python("-m", "tests.meta.data_parallel", folder))


@pytest.fixture(scope="module")
def on_gpus(python: Run, tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """Two processes, each with a GPU, that communicate by NCCL, started by torchrun."""
    if torch.cuda.device_count() < WORLD:
        pytest.skip(f"needs {WORLD} CUDA devices, and there are {torch.cuda.device_count()}")
    folder = tmp_path_factory.mktemp("gpus")
    torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={WORLD}")
    return _found(folder, python(*torchrun, "-m", "tests.meta.data_parallel", folder, "cuda"))


@pytest.fixture
def ranks(request: pytest.FixtureRequest, where: str) -> Ranks:
    """The results of each process on the test's device."""
    found: Ranks = request.getfixturevalue({"cpu": "on_cpu", "cuda": "on_gpus"}[where])
    return found


def _hold(found: dict[str, Any]) -> bool:
    """Whether a rank's gradients, summed over ranks again, are those of the whole batch."""
    measure = expected(OPERATOR, SCENARIO, torch.float32)
    assert {f"gradient of {name}" for name in NAMES} <= measure.evident
    return all(compare(WORLD * found["gradients"][name], measure.gradients[name]).holds for name in NAMES)


@RUNS
def test_gradients_are_those_of_the_whole_batch(ranks: Ranks, name: str) -> None:
    assert all(_hold(rank[name]) for rank in ranks)


@RUNS
def test_after_a_step_both_ranks_have_the_same_parameters(ranks: Ranks, name: str) -> None:
    first, second = (rank[name] for rank in ranks)
    inputs = realise(OPERATOR, SCENARIO, torch.float32).inputs
    before = dict(zip((arg.name for arg in OPERATOR.inputs), inputs, strict=True))
    for parameter in NAMES:
        assert torch.equal(first["parameters"][parameter], second["parameters"][parameter])
        stepped = before[parameter] - RATE * first["gradients"][parameter]
        assert torch.equal(first["parameters"][parameter], stepped)  # halving a gradient is exact


@pytest.mark.parametrize(("where", "name"), [(where, name) for where in BACKENDS for name in WRONG])
def test_gradients_that_are_not_are_noticed(ranks: Ranks, name: str) -> None:
    assert not any(_hold(rank[name]) for rank in ranks)
