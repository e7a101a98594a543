"""`python -m harness reached`: gcov's counts are read right, and a line that no call runs is named."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import Broken, UnknownName
from harness.running.selection import Selection
from harness.sanitizing import gcov
from tests.meta.tiers import WHOLE

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None or shutil.which("gcov") is None, reason="g++ and gcov are not on PATH"
)

PROGRAM = """\
#include <stdexcept>
template <typename T>
T twice(T x) {
  if (x > 100) {
    x = 100;
  }
  return x + x;
}
int never() {
  return 3;
}
int main(int count, char**) {
  if (count > 5) return never();
  return twice(1) == 2 && twice(200.0) == 200 ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a program that ran once, its source in `own`."""
    folder = tmp_path_factory.mktemp("counts")
    (folder / "own").mkdir()
    source = folder / "own" / "program.cpp"
    source.write_text(PROGRAM)
    command = ["g++", *gcov.flags(folder), str(source), "-o", str(folder / "program")]
    subprocess.run(command, check=True, timeout=120)
    subprocess.run([folder / "program"], check=True, timeout=60)
    return folder


def test_counts_of_a_template_are_those_of_all_its_types(counts: Path) -> None:
    (source,) = gcov.read(counts, [counts / "own"])
    assert source.path == str(counts / "own" / "program.cpp")
    assert source.lines[5] == 1, "only twice(200.0) has set x to 100"
    assert source.unreached() == [9, 10], "the lines of never()"


def test_a_branch_that_was_never_taken_is_told(counts: Path) -> None:
    (source,) = gcov.read(counts, [counts / "own"])
    assert 13 in source.untaken()
    assert 4 not in source.untaken(), "one type has taken one side, another type the other"


def test_files_of_others_are_left_out(counts: Path, tmp_path: Path) -> None:
    assert gcov.read(counts, [tmp_path]) == []


def test_counts_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "damaged.gcda").write_bytes(b"nothing")
    with pytest.raises(Broken, match=r"gcov.* cannot read damaged\.gcda"):
        gcov.read(tmp_path, [tmp_path])


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(UnknownName, match="forward-parity"):
        list(gcov.measured(Selection(backends=("aten-cpp",), devices=("cpu",)), ["forward-party"]))


def test_a_selection_without_compiled_sources_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reached", "--backend", "python-autograd", "--device", "cpu"]) != 0
    assert "nothing to measure: the selection has no backend with compiled sources" in capsys.readouterr().err


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.json"
    other.write_text('{"kind": "report"}')
    assert main(["reached", "--backend", "aten-cpp", "-o", str(other)]) != 0
    assert "--output" in capsys.readouterr().err
    assert json.loads(other.read_text()) == {"kind": "report"}


@pytest.mark.long(WHOLE)
def test_what_only_gradients_reach_is_unreached_by_forward_parity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "reached.json"
    options = ["--operator", "mlp", "--backend", "aten-cpp", "--device", "cpu", "--dtype", "float32"]
    assert main(["reached", *options, "--property", "forward-parity", "-o", str(record)]) == 0
    (found,) = json.loads(record.read_text())["implementations"]
    files = {Path(file["path"]).name: file for file in found["files"]}
    assert found["failed"] == []
    source = Path(files["mlp.cpp"]["path"]).read_text().splitlines()
    unreached = {source[line - 1].strip() for line in files["mlp.cpp"]["unreached"]}
    assert any("backward" in line for line in unreached), unreached
    assert not any("forward" in line for line in unreached), unreached
    printed = capsys.readouterr().out
    assert "mlp / aten-cpp on cpu" in printed
    assert "aten_cpp/mlp.cpp:" in printed
