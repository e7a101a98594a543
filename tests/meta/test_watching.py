"""`judge --watch FILE` judges again after each change of the file, and ends cleanly on Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import watching
from harness.errors import UsageError
from tests.meta.conftest import ROOT, environment, heeded

#: What watches here runs a function that writes the file's text and ends with the number in it.
_WATCH = """
import sys
from pathlib import Path
from types import SimpleNamespace
from harness.cli import watching

watching.importlib.import_module = lambda name: None  # the suite is not needed here
watching.launching.keep_runner = lambda folder: None
sys.modules["harness.running.suite_process"] = SimpleNamespace(keep=lambda: None)
files, others = watching.read(sys.argv[1:])

def run():
    print("judged", files[0].read_text(), others, flush=True)
    return int(files[0].read_text())

sys.exit(watching.again(files, run))
"""


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "k.py"
    found.write_text("1")
    return found


def test_it_runs_again_after_each_change_and_ends_with_the_last_exit_code(file: Path, tmp_path: Path) -> None:
    said = tmp_path / "said.txt"
    with said.open("w") as out, heeded(signal.SIGINT):
        run = subprocess.Popen(
            [sys.executable, "-c", _WATCH, "--quick", "--watch", str(file)],
            cwd=ROOT,
            env=environment(),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        _until(lambda: said.read_text().count("waiting for a change") == 1)
        assert "judged 1 ['--quick']" in said.read_text()
        file.unlink()  # as an editor may do
        time.sleep(2 * watching._LOOK)
        other = file.with_suffix(".new")
        other.write_text("23")
        os.replace(other, file)
        _until(lambda: said.read_text().count("waiting for a change") == 2)
        assert "judged 23 ['--quick']" in said.read_text()
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=60) == 23
    finally:
        run.kill()
        run.wait()
    assert said.read_text().count("judged") == 2
    assert "Traceback" not in said.read_text()


@pytest.mark.parametrize("arguments", [["--watch", "gone.py"], ["--watch"]])
def test_what_cannot_be_watched_is_told(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="--watch was"):
        watching.read(arguments)


def test_without_it_all_arguments_are_left() -> None:
    assert watching.read(["--candidate", "a=b.py:c", "-k", "parity"]) == (
        [],
        ["--candidate", "a=b.py:c", "-k", "parity"],
    )
