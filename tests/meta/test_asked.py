"""A property that is asked in some dtypes or on some devices alone has no cell and no test elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from backends.base import CUDA, DEVICES
from harness import verify
from harness.discovery import operator
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import PASS
from harness.report.report import Report
from harness.running import suite
from harness.running.selection import DTYPE_NAMES
from tests.meta.conftest import Run
from tests.zoo.honest.lltm import plain


def test_each_place_exists_and_is_explained() -> None:
    for name, property in all_properties().items():
        assert set(property.devices) <= set(DEVICES), name
        assert set(property.dtypes) <= set(DTYPE_NAMES), name
        assert bool(property.only()) is bool(property.why_only), name


def test_a_place_that_nobody_explains_is_refused() -> None:
    for fields in ({"dtypes": ("float32",)}, {"devices": (CUDA,)}, {"why_only": "for nothing"}):
        with pytest.raises(ValueError, match="should explain its dtypes and devices"):
            Property("shine", "it shines", lambda _: {}, **fields)  # type: ignore[arg-type]


def test_a_place_is_asked_by_device_and_dtype() -> None:
    found = Property("shine", "", lambda _: {}, dtypes=("float32",), devices=(CUDA,), why_only="light is float32")
    assert found.is_asked("cuda", "float32")
    assert not found.is_asked("cpu", "float32")
    assert not found.is_asked("cuda", "float64")
    assert found.only() == "on cuda in float32: light is float32"
    assert Property("shine", "", lambda _: {}).is_asked("cuda-emulated", "float16")
    with pytest.raises(
        ValueError, match=r"shine is asked on cuda in float32: light is float32; it was judged on cpu in"
    ):
        judge(Subject(operator("lltm"), "mine", "cpu", torch.float32, plain), found)


def test_the_report_names_the_places() -> None:
    known = {entry.name: entry for entry in suite.describe().properties}
    assert (known["reduce-overhead"].dtypes, known["reduce-overhead"].devices) == (("float32",), (CUDA,))
    assert "CUDA graphs" in known["reduce-overhead"].why_only
    assert (known["sizes"].dtypes, known["sizes"].devices, known["sizes"].why_only) == ((), (), "")


def test_pytest_has_no_test_elsewhere(conformance: Run, tmp_path: Path) -> None:
    """In one dtype on the CPU: gradcheck is not asked there, cuda-graphs nowhere, forward-parity everywhere."""
    path = tmp_path / "report.json"
    chosen = ["--backend=python-autograd", "--operator=mlp", "--device=cpu", "--dtype=float32", f"--report={path}"]
    done = conformance("forward_parity gradcheck cuda_graphs", *chosen)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    for word in ("skipped", "deselected", "NOTSET", "not-run 1"):
        assert word not in done.stdout
    report = Report.read(path)
    assert report.complete
    assert [(cell.property, cell.verdict) for cell in report.cells] == [("forward-parity", PASS)]
    assert json.loads(path.read_text())["plan"]["asked"] == 1


def test_verify_makes_no_cell_elsewhere() -> None:
    report = verify(plain, "lltm", device="cpu", dtypes=["float32", "float64"], properties=["gradcheck", "cuda-graphs"])
    assert [(cell.property, cell.dtype) for cell in report.cells] == [("gradcheck", "float64")]
