"""Right functions as people write them: each is told in one sentence that it is right, and the exit code is 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.properties import all_properties
from harness.report.levels import SAFE, is_required
from tests.meta.conftest import ROOT, Run
from tests.meta.tiers import first_alone

STRANGERS = ROOT / "tests" / "meta" / "data" / "strangers"
#: What the sentence is about.
_ASKED = [f"--property={name}" for name, held in all_properties().items() if is_required(held.level, SAFE)]


@pytest.mark.parametrize("candidate", first_alone(["lltm=plain.py:lltm", "lltm=pybind.py:lltm", "mlp=compiled.py:mlp"]))
def test_a_right_function_is_told_so(candidate: str, python: Run, tmp_path: Path) -> None:
    operator, _, place = candidate.partition("=")
    options = [f"--candidate={operator}={STRANGERS / place}", "--dtype=float32", "--device=cpu", "-n0", *_ASKED]
    run = python("-m", "harness", "judge", *options, f"--report={tmp_path / 'report.json'}")
    assert run.returncode == 0, run.stdout
    assert "Values and gradients are right in float32, and it is safe." in run.stdout
