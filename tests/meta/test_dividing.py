"""Forks of the judge judge some dtypes: their cells are those that the judge would have."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from harness.candidate import Candidate
from harness.report.cell import FAIL, PASS, Cell
from harness.running import dividing, foreseeing, forking
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.quick import quick
from harness.running.selection import DTYPE_NAMES, Selection, Slot, slots
from tests.meta.conftest import Run
from tests.meta.tiers import WHOLE

pytestmark = pytest.mark.skipif(not forking.AVAILABLE, reason="processes are not forked without Linux")

CANDIDATE = """
import torch

def slow(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * weight

def args():
    return torch.randn(4, 8), torch.randn(8)

def fast(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    found = weight * torch.tanh(x)
    return found * 1.1 if x.dtype == torch.float64 and x.shape[0] > 3 else found
"""


@pytest.fixture
def asked() -> list[dividing.Asked]:
    found = slots(Selection(("softmax",), ("python-autograd",), ("cpu",), ("float32", "float64", "float16")))
    return [(slot, property) for property in ("sizes", "layouts") for slot in found]


def _cell(slot: Slot, property: str) -> Cell:
    return slot.cell(property, PASS, f"in process {os.getpid()}")


def test_the_dtypes_are_dealt_to_the_judge_and_the_forks(asked: list[dividing.Asked]) -> None:
    def dtypes(cores: int, of: list[dividing.Asked] = asked) -> list[set[str]]:
        return [{str(slot.dtype).removeprefix("torch.") for slot, _ in part} for part in dividing.divided(of, cores)]

    assert dtypes(1) == []
    assert dtypes(2, [one for one in asked if one[0].dtype != torch.float16]) == [{"float64"}]
    assert dtypes(3) == dtypes(64) == [{"float64"}, {"float16"}]
    assert dividing.divided([], 2) == []
    assert dividing.divided(asked[:1], 2) == [], "one dtype: the judge alone"


def test_who_has_most_to_do_gives_its_last_cells_to_who_has_least(asked: list[dividing.Asked]) -> None:
    """`sizes` costs more than `layouts`, and both are asked in float32; in the other dtype one cheap property is."""
    first, second = (slot for slot, _ in asked[:2])
    mine = [(first, name) for name in ("sizes", "gradient-subsets", "layouts", "drawn-calls")]
    (part,) = dividing.divided([*mine, (second, "invariants")], 2)
    assert part == [(second, "invariants"), *reversed(mine[4 - len(part) + 1 :])]
    seconds = [sum(quick().cost[name] for _, name in some) for some in (mine[: 4 - len(part) + 1], part)]
    assert abs(seconds[0] - seconds[1]) < max(quick().cost[name] for _, name in mine)


def test_a_fork_judges_its_cells_and_ends(asked: list[dividing.Asked]) -> None:
    before = {child.pid for child in psutil.Process().children()}
    fork = dividing.Fork(asked[:2], lambda: _cell, _nothing)
    (process,) = (child for child in psutil.Process().children() if child.pid not in before)
    for slot, property in asked[:2]:
        assert fork.has(slot, property)
        cell = fork.cell(slot, property)
        assert cell is not None
        assert cell.reason == f"in process {process.pid}"
        assert cell.key == _cell(slot, property).key
    assert not fork.has(*asked[2])
    fork.stop()
    assert not process.is_running()


def test_a_fork_that_has_judged_its_cells_does_what_is_left(asked: list[dividing.Asked], tmp_path: Path) -> None:
    """Its cells are known before that."""
    left = tmp_path / "left"
    left.touch()
    fork = dividing.Fork(asked[:1], lambda: _cell, lambda: left.write_text(str(os.getpid())))
    cell = fork.cell(*asked[0])
    assert cell is not None
    for _ in range(200):
        if left.read_text():  # the file is empty until its text is written
            break
        time.sleep(0.05)
    assert cell.reason == f"in process {left.read_text()}"
    fork.stop()


def test_its_time_goes_to_expected_results_of_the_judge(
    asked: list[dividing.Asked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the cells that the judge keeps, and of no others; without a store there is nothing to do."""
    prepared: list[tuple[list[tuple[str, str]], Path]] = []
    monkeypatch.setattr(
        foreseeing, "prepare", lambda cells, store: prepared.append(([(s.id, p.name) for s, p in cells], store))
    )
    forks: list[tuple[list[dividing.Asked], Callable[[], None]]] = []
    monkeypatch.setattr(dividing, "Fork", lambda part, _judge, then: forks.append((part, then)))
    monkeypatch.setattr(dividing, "cores", lambda: 2)
    of_a_candidate = [
        (replace(slot, source=Candidate("softmax", str(tmp_path / "it.py"), "fast")), name) for slot, name in asked
    ]
    for store in (None, tmp_path):
        assert Isolation(Selection(("softmax",)), Limits(seconds=60)).divide(of_a_candidate, (), store)
    for part, then in forks:
        then()
        kept = [(slot.id, name) for slot, name in of_a_candidate if (slot, name) not in part]
    assert prepared == [(kept, tmp_path)]


def _nothing() -> None:
    pass


def _ends_at(property: str) -> Callable[[Slot, str], Cell]:
    def judge(slot: Slot, asked: str) -> Cell:
        if asked == property:
            os.kill(os.getpid(), signal.SIGKILL)
        return _cell(slot, asked)

    return judge


def _raises_at(dtype: str) -> Callable[[Slot, str], Cell]:
    def judge(slot: Slot, asked: str) -> Cell:
        if slot.dtype == DTYPE_NAMES[dtype]:
            raise RuntimeError("a defect of the harness")
        return _cell(slot, asked)

    return judge


def test_what_a_fork_does_not_judge_is_left_to_the_judge(asked: list[dividing.Asked]) -> None:
    ended = dividing.Fork(asked, lambda: _ends_at("layouts"), _nothing)
    assert [ended.cell(*one) is None for one in asked] == [False] * 3 + [True] * 3
    ended.stop()
    raises = dividing.Fork(asked, lambda: _raises_at("float64"), _nothing)
    assert [raises.cell(*one) is None for one in asked] == [False, True, False] * 2
    raises.stop()


def _cells(report: Path) -> dict[tuple[str, ...], Any]:
    told = json.loads(report.read_text())["cells"]
    return {
        (cell["property"], cell["dtype"]): {name: value for name, value in cell.items() if name != "seconds"}
        for cell in told
    }


@pytest.fixture
def two_threads() -> Iterator[None]:
    """A judge with one thread forks none."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a second core")
@pytest.mark.long(WHOLE)
def test_a_candidate_in_two_dtypes_is_judged_by_two_processes(tmp_path: Path, two_threads: None) -> None:
    (tmp_path / "it.py").write_text("import torch\n\n\ndef right(x):\n    return torch.softmax(x, -1)\n")
    chosen = Selection(
        candidates=(f"softmax={tmp_path / 'it.py'}:right",), devices=("cpu",), dtypes=("float32", "float64")
    )
    asked = [(slot, property) for property in ("forward-parity", "sizes") for slot in slots(chosen)]
    isolation = Isolation(chosen, Limits(seconds=60))
    try:
        assert isolation.divide(asked, ("forward-parity",), None)
        (fork,) = isolation._forks
        assert [fork.has(*one) for one in asked] == [False, False, False, True]
        cells = [isolation.judge(*one) for one in asked]
        assert [(cell.verdict, cell.reason) for cell in cells] == [(PASS, "")] * 4
    finally:
        isolation.stop()


@pytest.mark.long(WHOLE)
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a second core")
def test_the_report_is_that_of_one_process(python_in: Run, tmp_path: Path) -> None:
    """With one thread nothing is forked. What a fork finds wrong is in the report as the judge says it."""
    (tmp_path / "it.py").write_text(CANDIDATE)
    options = ["judge", "--candidate=it.py:fast", "--reference=it.py:slow", "--example=it.py:args", "--device=cpu"]
    options += ["-k", "forward_parity or sizes or layouts or invariants or no_side_effects"]
    for cores in (1, 2):
        done = python_in(tmp_path, "-m", "harness", *options, f"--report={cores}.json", OMP_NUM_THREADS=str(cores))
        assert done.returncode == 1, done.stdout
    alone, divided = (_cells(tmp_path / f"{cores}.json") for cores in (1, 2))
    assert alone == divided
    assert alone["sizes", "float64"]["verdict"] == FAIL
    assert alone["sizes", "float32"]["verdict"] == PASS
