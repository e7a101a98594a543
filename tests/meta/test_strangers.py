"""Right functions as people write them: each is told in one sentence that it is right, and the exit code is 0."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.meta.conftest import ROOT, environment

STRANGERS = ROOT / "tests" / "meta" / "data" / "strangers"


@pytest.mark.parametrize("candidate", ["lltm=plain.py:lltm", "lltm=pybind.py:lltm", "mlp=compiled.py:mlp"])
def test_a_right_function_is_told_so(candidate: str, tmp_path: Path) -> None:
    operator, _, place = candidate.partition("=")
    options = [f"--candidate={operator}={STRANGERS / place}", "--dtype=float32", "--device=cpu", "-n0"]
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
