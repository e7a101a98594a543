"""Tools that time whole commands run them in a folder of their own, and find this tree there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.executing.module_path import with_this_tree
from tests.meta.conftest import ROOT
from tests.meta.tiers import TOOL


@pytest.mark.parametrize("before", [None, "elsewhere"])
def test_a_process_in_another_folder_imports_this_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """What was on the path of modules stays there, after this tree."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONPATH", before)
    environment = {**os.environ, "PYTHONPATH": with_this_tree(os.environ)}
    assert environment["PYTHONPATH"].split(os.pathsep)[1:] == ([] if before is None else [before])
    script = "import harness; print(harness.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == ROOT / "harness" / "__init__.py"


@pytest.mark.long(TOOL)
def test_a_reference_is_timed_with_nothing_kept_and_with_what_is_kept() -> None:
    """The suite is not installed for it: the tool is run from the root of a clone."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "tools.reference_time", "--operator", "rms_norm", "--", "--quick"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\| rms_norm \|( [\d.]+ \|){4}$", done.stdout, re.M), done.stdout
