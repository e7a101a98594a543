"""`python -m harness divide`: the verdict of one run, from several processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.report.report import Report
from tests.meta.conftest import Run, environment, heeded

ASKED = ["--operator", "swiglu", "--device", "cpu", "--dtype", "float32"]
TWO = ["--property", "gradient-subsets", "--property", "layouts"]


def test_parts_are_joined_and_the_verdict_is_shown(python_in: Run, tmp_path: Path) -> None:
    """gradient-subsets is shared out, layouts is in one part, and a third of the parts may have no whole cell."""
    arguments = ["--processes", "2", "--parts", "3", "-o", "all.json", "--", *ASKED, *TWO, "--backend=python-autograd"]
    run = python_in(tmp_path, "-m", "harness", "divide", *arguments)
    assert run.returncode == 0, run.stdout + run.stderr
    assert sorted(line.partition(":")[0] for line in run.stdout.splitlines()[:3]) == [
        f"part {k} of 3" for k in (1, 2, 3)
    ]
    assert "Values and gradients are right in float32" in run.stdout
    report = Report.read(tmp_path / "all.json")
    assert report.complete
    assert {cell.property: cell.figures.get("divided") for cell in report.cells} == {
        "gradient-subsets": 3,
        "layouts": None,
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.json"]


def test_a_wrong_function_is_not_green(python_in: Run, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(
        "import torch\n\ndef swiglu(gate, up):\n    return torch.nn.functional.silu(gate) * up * 1.01\n"
    )
    arguments = ["--processes", "2", "-o", "all.json", "--", *ASKED[2:], *TWO, "--candidate", "swiglu=wrong.py:swiglu"]
    run = python_in(tmp_path, "-m", "harness", "divide", *arguments)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "but the run is not green" in run.stdout
    assert {cell.verdict for cell in Report.read(tmp_path / "all.json").cells} == {"fail"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--processes", "-1"], "--processes: was '-1', but should be a whole number from 1 to"),
        (["--", "--shard=1/2"], "--shard=1/2 was given to judge, but `divide` gives it itself: leave it out"),
        (["--", "-n4"], "-n4 was given to judge, but `divide` gives it itself: leave it out"),
        (["--processes", "2", "--", "--operator", "swigly"], "unknown operator 'swigly'; did you mean 'swiglu'?"),
    ],
)
def test_what_cannot_be_is_told(python_in: Run, tmp_path: Path, arguments: list[str], says: str) -> None:
    run = python_in(tmp_path, "-m", "harness", "divide", *arguments)
    assert run.returncode == 2
    assert run.stderr.count(says) == 1


def test_an_interrupt_ends_all_parts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "harness", "divide", "--processes", "2", "--", *ASKED, "--backend=torch-native"]
    with heeded(signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(parts := _children(process.pid)) < 2:
        assert time.monotonic() < until, "no part was begun"
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, says = process.communicate(timeout=60)
    assert process.returncode == 130
    assert says.endswith("interrupted: no part is kept\n")
    assert not any(Path(f"/proc/{part}").exists() for part in parts)
    assert not list(tmp_path.iterdir())


def _children(parent: int) -> list[str]:
    """The processes that any thread of `parent` has begun."""
    found = [path.read_text().split() for path in Path(f"/proc/{parent}/task").glob("*/children")]
    return [child for each in found for child in each]
