"""Further judges, where the judge cannot be forked: their cells are those that it would have."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.report.cell import FAIL, PASS
from harness.running import forking, further_judge, launching
from harness.running.candidate_process import Limits
from harness.running.further_judge import FurtherJudge, Task
from harness.running.isolation import Isolation
from harness.running.selection import Selection, Slot, slots
from tests.meta.conftest import Run
from tests.meta.test_dividing import CANDIDATE, _cells
from tests.meta.tiers import WHOLE

pytestmark = pytest.mark.skipif(not forking.AVAILABLE, reason="processes are not forked without Linux")

#: `judge` as on a machine with a GPU and cores for every dtype: it can be forked until it has computed something.
_JUDGE = """
import sys
from harness.running import dividing, forking, launching

forking.may_fork = lambda: launching.SUITE not in launching.zygotes
dividing.cores = lambda: int(sys.argv[1])
from harness.cli.judge import main

sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.long(WHOLE)
def test_the_report_is_that_of_one_process(python_in: Run, tmp_path: Path) -> None:
    """Properties of both kinds: those that need only tensors, and those that look at the inside of PyTorch."""
    (tmp_path / "it.py").write_text(CANDIDATE)
    options = ["--candidate=it.py:fast", "--reference=it.py:slow", "--example=it.py:args", "--device=cpu", "-n0"]
    options += ["-k", "forward_parity or sizes or layouts or no_side_effects or global_state"]
    for cores in (1, 8):
        done = python_in(tmp_path, "-c", _JUDGE, cores, *options, f"--report={cores}.json")
        assert done.returncode == 1, done.stdout + done.stderr
    alone, divided = (_cells(tmp_path / f"{cores}.json") for cores in (1, 8))
    assert alone == divided
    assert alone["sizes", "float64"]["verdict"] == FAIL
    assert alone["sizes", "float32"]["verdict"] == PASS
    assert alone["global-state", "bfloat16"]["verdict"] == PASS


class _Process:
    """In place of a process: it answers the first requests, and then it has ended."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self._answers, self.asked, self.stopped = iter(answers), list[dict[str, Any]](), False

    def ask(self, asked: dict[str, Any], seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        assert seconds > 60
        self.asked.append(asked)
        try:
            return next(self._answers), {}
        except StopIteration:
            raise further_judge.RunnerFailure("died") from None

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def asked() -> list[tuple[Slot, str]]:
    chosen = Selection(("softmax",), ("python-autograd",), ("cpu",), ("float32",))
    return [(slot, property) for slot in slots(chosen) for property in ("sizes", "layouts", "memory")]


def _cell(slot: Slot, property: str) -> dict[str, Any]:
    return {"cell": vars(slot.cell(property, PASS, "judged elsewhere"))}


def test_what_it_does_not_judge_is_left_to_the_first(asked: list[tuple[Slot, str]]) -> None:
    first, second, third = asked
    process = _Process([{}, _cell(*first), {"trouble": "a defect of the harness"}])
    further = FurtherJudge(asked, "the task", lambda: process)  # type: ignore[arg-type, return-value]
    found = [further.cell(*one) for one in asked]
    assert [cell and cell.reason for cell in found] == ["judged elsewhere", None, None]
    assert process.asked[0] == {"judge": "the task"}
    assert [one["property"] for one in process.asked[1:]] == [first[1], second[1], third[1]]
    assert not further.has(first[0], "determinism")
    further.stop()
    assert process.stopped


@pytest.mark.parametrize("answers", [[], [{"trouble": "the contract is not there"}]], ids=["dies", "cannot read"])
def test_one_that_does_not_begin_judges_nothing(asked: list[tuple[Slot, str]], answers: list[dict[str, Any]]) -> None:
    process = _Process(answers)
    further = FurtherJudge(asked, "the task", lambda: process)  # type: ignore[arg-type, return-value]
    assert [further.cell(*one) for one in asked] == [None] * 3
    further.stop()


def test_without_the_processes_that_fork_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("import torch\n\n\ndef right(x):\n    return torch.softmax(x, -1)\n")
    chosen = Selection(candidates=(f"softmax={tmp_path / 'it.py'}:right",), devices=("cpu",))
    monkeypatch.setattr(forking, "may_fork", lambda: False)
    monkeypatch.setattr(launching, "zygotes", {})
    isolation = Isolation(chosen, Limits(seconds=60))
    assert not isolation.divide([(slot, "sizes") for slot in slots(chosen)], (), None)


def test_a_task_reads_as_it_was_written() -> None:
    task = Task(Selection(("lltm",)), Limits(3.0), (), "auto", (), None, {"runner": 5}, (("lltm-a-cpu", "sizes"),))
    assert Task.of_text(task.as_text()) == task


_DRIVER = "int cuDeviceGetCount(int *count) { *count = 1; return %d; }\n"


@pytest.fixture
def driver(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A library of the driver that was loaded, and whose function returns the parameter."""
    source, library = tmp_path / "driver.c", tmp_path / f"driver-{request.param}.so"
    source.write_text(_DRIVER % request.param)
    subprocess.run(["gcc", "-shared", "-o", str(library), str(source)], check=True)
    loaded = ctypes.CDLL(str(library))
    yield str(library)
    del loaded


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler for a driver in place of CUDA's")
@pytest.mark.parametrize(("driver", "may"), [(3, True), (0, False)], indirect=["driver"])
def test_a_process_may_fork_until_it_has_initialised_the_driver(
    driver: str, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forking, "_DRIVER", driver)
    assert forking.may_fork() is may


def test_without_the_driver_a_process_may_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "_DRIVER", "libthere-is-none.so.1")
    assert forking.may_fork()


def test_no_process_is_left(python_in: Run, tmp_path: Path) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    (tmp_path / "it.py").write_text(CANDIDATE)
    options = ["--candidate=it.py:fast", "--reference=it.py:slow", "--example=it.py:args", "--device=cpu", "-n0"]
    python_in(tmp_path, "-c", _JUDGE, 8, *options, "-k", "layouts", "--report=it.json")
    left = [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if process.pid not in before and str(tmp_path) in (process.info["cwd"] or "")
    ]
    assert not left, left
