"""An implementation that costs a process its CUDA device costs one cell: other processes judge what comes after it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.report.cell import DECLARED, FAIL, PASS
from tests.meta.conftest import Run
from tests.meta.tiers import WHOLE, first_alone

#: As after a wrong address in a kernel: torch has used a device, and nothing that uses it works any more. Without a GPU
#: that is all the process can find out.
LOSES = """
import os
from pathlib import Path
import torch
from backends.base import PythonFunction

def scan(gates, tokens, initial=None):
    Path({file!r}).open("a").write(str(os.getpid()) + chr(10))
    torch.cuda._initialized = True
    {how}

IMPLEMENTATION = PythonFunction(scan)
"""
HOW = {
    "raises": 'raise RuntimeError("CUDA error: misaligned address")',
    "returns": "return tokens.clone()",
}
WRITES = """
import os
from pathlib import Path
from backends.base import PythonFunction
from backends.python_autograd.scan import IMPLEMENTATION as RIGHT

def scan(*inputs, **named):
    Path({file!r}).open("a").write(str(os.getpid()) + chr(10))
    return RIGHT.function(*inputs, **named)

IMPLEMENTATION = PythonFunction(scan)
"""
BACKEND = """
import torch
from backends.base import Backend, Declaration
BACKEND = Backend(summary="one of a test", devices=("cpu",), declared=({declared}))
"""


def backend(folder: Path, name: str, text: str, declared: str = "") -> None:
    place = folder / name
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(BACKEND.format(declared=declared))
    (place / "scan.py").write_text(text)


def judged(python: Run, folder: Path, *backends: str) -> dict[tuple[str, str], dict[str, Any]]:
    report = folder / "report.json"
    chosen = [part for name in backends for part in ("--backend", name)]
    for name in ("forward-parity", "determinism"):
        chosen += ["--property", name]
    where = ["--operator", "scan", "--device", "cpu", "--dtype", "float32", "--backend-path", folder / "backends"]
    options = ["-n", "0", "-q", "--report", report]
    python("-m", "pytest", "tests/conformance", *options, *map(str, where), *chosen)
    return {(cell["backend"], cell["property"]): cell for cell in json.loads(report.read_text())["cells"]}


@pytest.mark.parametrize("how", first_alone(HOW))
def test_the_next_cells_are_judged_in_other_processes(python: Run, tmp_path: Path, how: str) -> None:
    files = {name: tmp_path / f"{name}.pids" for name in ("loses", "writes")}
    backend(tmp_path / "backends", "loses", LOSES.format(how=HOW[how], file=str(files["loses"])))
    backend(tmp_path / "backends", "writes", WRITES.format(file=str(files["writes"])))
    found = judged(python, tmp_path, "loses", "writes")
    assert {place: cell["verdict"] for place, cell in found.items()} == {
        ("loses", "forward-parity"): FAIL,
        ("loses", "determinism"): FAIL,
        ("writes", "forward-parity"): PASS,
        ("writes", "determinism"): PASS,
    }
    later = [cell["reason"] for (name, _), cell in found.items() if name == "loses"]
    assert any("the process could use its CUDA device no more" in reason for reason in later), later
    first = files["loses"].read_text().split()[0]
    assert first not in files["writes"].read_text().split()


@pytest.mark.long(WHOLE)
def test_what_is_declared_stays_declared(python: Run, tmp_path: Path) -> None:
    declared = 'Declaration("forward-parity", "it has no kernel"), Declaration("determinism", "it has no kernel")'
    backend(tmp_path / "backends", "loses", LOSES.format(how=HOW["raises"], file=str(tmp_path / "pids")), declared)
    found = judged(python, tmp_path, "loses")
    assert {cell["verdict"] for cell in found.values()} == {DECLARED}
    assert {cell["reason"] for cell in found.values()} == {"it has no kernel"}
