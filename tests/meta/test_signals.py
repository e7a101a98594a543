"""A signal to `python -m harness judge` ends the whole run, with its report. Nothing outlives a run that is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.report.cell import PASS
from harness.report.report import Report
from tests.meta.conftest import environment, heeded
from tests.meta.tiers import first_alone

_KERNELS = """
import pathlib, time
from torch.nn.functional import linear

def right(input, hidden_weights, hidden_bias, output_weights, output_bias):
    return linear(linear(input, hidden_weights, hidden_bias).relu(), output_weights, output_bias)

def waits(*inputs):
    pathlib.Path({here!r}).touch()
    time.sleep(600)
"""


def _begin(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A run that waits in a call of its second candidate, after the first was judged."""
    file, here = folder / "k.py", folder / "here"
    file.write_text(_KERNELS.format(here=str(here)))
    command = [sys.executable, "-m", "harness", "judge", "--dtype=float32", "--device=cpu", "-k", "forward_parity"]
    command += [f"--candidate=mlp={file}:{name}" for name in ("right", "waits")]
    command += ["--report", str(folder / "report.json"), "--sandbox=off", *options]
    (folder / "tmp").mkdir()
    run = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(TMPDIR=str(folder / "tmp")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 200
    while run.poll() is None and time.monotonic() < end and not (here.exists() and _is_judged(folder)):
        time.sleep(0.1)
    assert run.poll() is None, run.communicate()[0]
    return run


def _is_judged(folder: Path) -> bool:
    return (folder / "report.json").exists() and bool(Report.read(folder / "report.json").cells)


@pytest.mark.parametrize(
    ("ending", "workers"),
    first_alone([(signal.SIGTERM, "0"), (signal.SIGHUP, "2"), (signal.SIGINT, "0"), (signal.SIGKILL, "2")]),
    ids=["terminated", "hung-up", "interrupted", "killed"],
)
def test_a_signal_ends_the_whole_run_and_keeps_its_cells(tmp_path: Path, ending: signal.Signals, workers: str) -> None:
    with heeded(signal.SIGINT, signal.SIGHUP):
        run = _begin(tmp_path, "-n", workers)
    started = psutil.Process(run.pid).children(recursive=True)
    assert started
    run.send_signal(ending)
    if ending == signal.SIGINT:
        run.send_signal(ending)  # an impatient second one
    printed, _ = run.communicate(timeout=180)  # five processes import torch, beside other tests
    assert run.returncode == (-signal.SIGKILL if ending == signal.SIGKILL else pytest.ExitCode.INTERRUPTED)
    _, alive = psutil.wait_procs(started, timeout=20)
    assert not alive, f"outlived the run: {alive}"
    assert not list((tmp_path / "tmp").rglob("call-*"))
    assert "Traceback" not in printed
    report = Report.read(tmp_path / "report.json")
    assert not report.complete
    assert [(cell.backend, cell.verdict) for cell in report.cells] == [("right", PASS)]
    if ending != signal.SIGKILL:
        assert "This report is partial: the run did not finish (1 of 2 cells)" in printed
