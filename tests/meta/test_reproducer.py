"""A failure comes with a script of under 20 lines that reproduces it alone, in any folder."""

import subprocess
import sys
from pathlib import Path

import torch

from harness.candidate import candidate
from harness.discovery import load_candidate
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties.drawn_calls import PROPERTY
from harness.report.cell import FAIL
from spec.lltm import OPERATOR

ROOT = Path(__file__).parents[2]
WRONG = """
import torch
import torch.nn.functional as F

def lltm(input, weights, bias, old_h, old_cell):
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, 1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o) * (1.01 if new_cell.shape[1] > 6 else 1), new_cell
"""


def test_the_script_shows_the_failure_alone(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(WRONG)
    found = candidate(f"lltm={file}:lltm")
    function, _ = load_candidate(found)
    subject = Subject(OPERATOR, found.name, "cpu", torch.float32, function, source=found.text)
    cell = judge(subject, PROPERTY)
    assert cell.verdict == FAIL
    script = cell.figures["reproducer"]
    assert len(script.splitlines()) < 20
    assert "state_size=7" in cell.reason, f"not shrunk to the smallest that fails: {cell.reason}"
    (tmp_path / "reproduce.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "reproduce.py"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.strip() in cell.reason
