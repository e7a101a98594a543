"""A command that is forked does what a new process does."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.report.report import Report
from harness.running import forking
from tests.meta.conftest import ROOT, environment
from tests.meta.served import Commands
from tests.meta.tiers import AGAIN, WHOLE

#: See `forking.AVAILABLE`.
pytestmark = pytest.mark.skipif(not forking.AVAILABLE, reason="processes are not forked without Linux")

CELLS = Path(__file__).with_name("wrong_cells.py")


@pytest.fixture(scope="module")
def built() -> Iterator[Commands]:
    commands = Commands(ROOT, environment())
    yield commands
    commands.close()


def _without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?s\b", "TIME", text)


@pytest.mark.long(WHOLE)
@pytest.mark.parametrize(
    ("module", "where", "folder"),
    [
        ("pytest", ["tests/conformance/test_properties.py::test_vjp_parity", "-p", "no:cacheprovider", "-q"], ROOT),
        pytest.param("harness", ["judge", "--property=vjp-parity"], None, marks=pytest.mark.long(AGAIN)),
    ],
    ids=["pytest", "judge"],
)
def test_output_exit_code_and_report_are_the_same(
    built: Commands, tmp_path: Path, module: str, where: list[str], folder: Path | None
) -> None:
    chosen = [f"--candidate=lltm={CELLS}:{name}" for name in ("right", "bias_of_one_row")]
    words = ["-m", module, *where, *chosen, "--dtype=float32", "--device=cpu", "--report=REPORT"]
    found, cells = [], []
    for name in ("forked", "new"):
        asked = [word.replace("REPORT", str(tmp_path / f"{name}.json")) for word in words]
        place, variables = folder or tmp_path, environment()
        assert built.can(asked, variables)
        done = (
            built.run(asked, place, variables, 200)
            if name == "forked"
            else subprocess.run(
                [sys.executable, *asked],
                cwd=place,
                env=variables,
                capture_output=True,
                text=True,
                check=False,
                timeout=200,
            )
        )
        text = done.stdout.replace(f"{name}.json", "REPORT")
        found.append((done.returncode, _without_times(text), done.stderr))
        cells.append([{**vars(cell), "seconds": 0} for cell in Report.read(tmp_path / f"{name}.json").cells])
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert cells[0] == cells[1]
    assert {cell["backend"]: cell["verdict"] for cell in cells[0]} == {"right": "pass", "bias_of_one_row": "fail"}


def test_what_would_import_something_else_is_a_new_process(built: Commands) -> None:
    assert built.can(["-m", "harness", "judge"], environment())
    assert not built.can(["-m", "harness", "judge"], environment(CUDA_VISIBLE_DEVICES=""))
    assert not built.can(["-m", "harness", "judge"], environment(PYTHONPATH="elsewhere"))
    assert not built.can(["-m", "tools.mutation"], environment())
    assert not built.can(["-c", "pass"], environment())


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "raise ValueError('of the script')"])
def test_a_script_does_what_it_does_in_a_new_process(built: Commands, tmp_path: Path, ending: str) -> None:
    (tmp_path / "beside.py").write_text("HERE = 1\n")
    script = tmp_path / "script.py"
    script.write_text(f"import sys, os, beside\nprint(sys.argv, __name__, os.getcwd(), sys.path[0])\n{ending}\n")
    words = [str(script), "--an-option"]
    assert built.can(words, environment())
    forked = built.run(words, ROOT, environment(), 200)
    new = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment(), capture_output=True, text=True, check=False, timeout=200
    )
    assert (forked.returncode, forked.stdout) == (new.returncode, new.stdout)
    assert forked.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]


def test_a_command_that_takes_too_long_is_ended(built: Commands, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import time\n\ndef test_it():\n    time.sleep(600)\n")
    words = ["-m", "pytest", "test_it.py", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path)]
    with pytest.raises(subprocess.TimeoutExpired):
        built.run(words, tmp_path, environment(), 5.0)
    told = built.run(["-m", "harness", "nonsense"], tmp_path, environment(), 60.0)
    assert told.returncode == 2
    assert "unknown command" in told.stderr
