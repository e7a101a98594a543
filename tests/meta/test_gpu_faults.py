"""Faults that only a GPU shows, each noticed by its property; without a GPU these tests are skipped.

Each is judged by a separate command: after a failed capture a process cannot capture anything any more.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from harness.report.cell import FAIL, PASS, Cell
from harness.report.report import Report
from tests.meta import gpu_faults
from tests.meta.conftest import Run
from tests.meta.tiers import WHOLE

ON_A_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
ON_TWO = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")

FAULTS = [
    ("looks_at_a_value", "no-waiting", "forward returned when the GPU had done all"),
    ("waits_in_backward", "no-waiting", "backward returned when the GPU had done all"),
    ("looks_at_a_value", "cuda-graphs", "capture in a CUDA graph raised"),
    ("on_the_default_stream", "current-stream", "nan"),
    ("on_a_private_stream_in_secret", "record-stream", "new_h|new_cell|d_"),
    ("bias_of_an_earlier_call", "reduce-overhead", "call [1-4], "),
    ("leaves_an_error", "forward-parity", "forward raised LeftBehind: CUDA refused a launch"),
]


def _judged(conformance: Run, report: Path, function: str, property: str, device: str = "cuda") -> Cell:
    """The cell of one property for a function of `gpu_faults`."""
    candidate = f"lltm={Path(gpu_faults.__file__)}:{function}"
    places = ["--device", device, "--dtype", "float32", "--report", report]
    done = conformance(property.replace("-", "_"), "--candidate", candidate, *places)
    assert report.exists(), done.stdout + done.stderr
    (cell,) = Report.read(report).cells
    return cell


@ON_A_GPU
@pytest.mark.parametrize(("function", "property", "says"), FAULTS, ids=lambda value: value.split(" ")[0])
def test_fault_is_noticed(conformance: Run, tmp_path: Path, function: str, property: str, says: str) -> None:
    cell = _judged(conformance, tmp_path / "report.json", function, property)
    assert cell.verdict == FAIL, cell
    assert re.search(says, cell.reason), cell.reason


@ON_A_GPU
@pytest.mark.parametrize("property", sorted({property for _, property, _ in FAULTS}))
def test_an_honest_cell_is_left_alone(conformance: Run, tmp_path: Path, property: str) -> None:
    cell = _judged(conformance, tmp_path / "report.json", "plain", property)
    assert cell.verdict == PASS, cell


@ON_A_GPU
@pytest.mark.parametrize("property", ["record-stream", "current-stream", "no-waiting"])
def test_a_private_stream_is_no_fault(conformance: Run, tmp_path: Path, property: str) -> None:
    cell = _judged(conformance, tmp_path / "report.json", "on_a_private_stream", property)
    assert cell.verdict == PASS, cell


@ON_TWO
def test_what_works_on_the_first_device_alone_is_noticed(conformance: Run, tmp_path: Path) -> None:
    cell = _judged(conformance, tmp_path / "report.json", "on_the_first_device", "other-device")
    assert cell.verdict == FAIL, cell


@pytest.mark.long(WHOLE)
def test_they_can_be_asked_without_a_gpu(conformance: Run, tmp_path: Path) -> None:
    """On the CPU another property notices that a value was read; the right candidate passes it."""
    cell = _judged(conformance, tmp_path / "wrong.json", "looks_at_a_value", "fake-tensors", "cpu")
    assert cell.verdict == FAIL, cell
    assert _judged(conformance, tmp_path / "right.json", "plain", "fake-tensors", "cpu").verdict == PASS
