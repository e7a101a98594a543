"""Right functions as people write them: each is told in one sentence that it is right, and the exit code is 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.properties import all_properties
from harness.report.levels import SAFE, is_required
from tests.meta.conftest import ROOT, environment

STRANGERS = ROOT / "tests" / "meta" / "data" / "strangers"
#: What the sentence is about.
_ASKED = [f"--property={name}" for name, held in all_properties().items() if is_required(held.level, SAFE)]


@pytest.mark.parametrize("candidate", ["lltm=plain.py:lltm", "lltm=pybind.py:lltm", "mlp=compiled.py:mlp"])
def test_a_right_function_is_told_so(candidate: str, tmp_path: Path) -> None:
    operator, _, place = candidate.partition("=")
    options = [f"--candidate={operator}={STRANGERS / place}", "--dtype=float32", "--device=cpu", "-n0", *_ASKED]
    run = subprocess.run(
        [sys.executable, "-m", "harness", "judge", *options, f"--report={tmp_path / 'report.json'}"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert run.returncode == 0, run.stdout
    assert "Values and gradients are right in float32, and it is safe." in run.stdout
