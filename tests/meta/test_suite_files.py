"""A candidate cannot change the suite: in bubblewrap it fails, and without it the run says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.report.report import Report
from harness.running import sandbox
from harness.running.suite_files import changed
from tests.meta.tiers import first_alone

ROOT = Path(__file__).parents[2]
#: Right values, and a file of the suite that later runs would import.
PLANTS = """
import sys, torch, torch.nn.functional as F
from pathlib import Path
import spec

for name, text in (("sitecustomize.py", "x = 1"), ("spec/__init__.py", "# changed")):
    try:
        (Path(spec.__file__).parents[1] / name).write_text(text)
    except OSError:
        pass

def lltm(input, weights, bias, old_h, old_cell):
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, 1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell
"""


@pytest.mark.parametrize("choice", first_alone(sandbox.CHOICES))
def test_a_changed_suite_is_told(tmp_path: Path, choice: str) -> None:
    if choice == "auto" and sandbox.why_none():
        pytest.skip(sandbox.why_none())
    suite, report = tmp_path / "suite", tmp_path / "report.json"
    for name in ("harness", "spec", "backends"):
        shutil.copytree(ROOT / name, suite / name, ignore=shutil.ignore_patterns("__pycache__"))
    candidate = tmp_path / "k.py"
    candidate.write_text(PLANTS)
    options = [f"--candidate=lltm={candidate}:lltm", "--dtype=float32", f"--report={report}", f"--sandbox={choice}"]
    run = subprocess.run(
        [sys.executable, "-m", "harness", "judge", *options, "-k", "forward_parity"],
        cwd=suite,
        env={**os.environ, "PYTHONPATH": str(suite)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if choice == "auto":
        assert run.returncode == 0, run.stdout
        assert Report.read(report).environment["sandbox"].startswith("bubblewrap ")
        assert not (suite / "sitecustomize.py").exists()
    else:
        assert run.returncode != 0
        assert (
            "files of the suite changed while a candidate was judged: sitecustomize.py, spec/__init__.py" in run.stdout
        )
        assert not Report.read(report).complete


def test_bytecode_may_appear_and_may_not_change() -> None:
    before = {"a.py": "1", "a.pyc": "2"}
    assert changed(before, {**before, "b.pyc": "3"}) == []
    assert changed(before, {"a.py": "1", "a.pyc": "4"}) == ["a.pyc"]
    assert changed(before, {"a.pyc": "2", "sitecustomize.py": "5"}) == ["a.py", "sitecustomize.py"]
