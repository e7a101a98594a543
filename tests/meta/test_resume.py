"""A run that is ended or killed leaves a report marked as partial, and another run completes it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.pytest_plugin import partial_report as record_module
from harness.pytest_plugin.names import of_cell as name_of
from harness.pytest_plugin.partial_report import Record
from harness.report.cell import CUT_OFF, FAIL, NO_EVIDENCE
from harness.report.report import Report
from harness.report.shards import RunPlan
from tests.meta.conftest import ROOT, Run, environment
from tests.meta.reports import MACHINE, cell, of
from tests.meta.tiers import WHOLE, first_alone

PLAN = RunPlan("asked", "files", asked=2)
HALF = replace(of(cell(), complete=False), plan=PLAN)

_KERNELS = """
import pathlib, time
from spec.lltm import forward as right

def waits(*inputs):
    pathlib.Path({here!r}).touch()
    while not pathlib.Path({go!r}).exists():
        time.sleep(0.05)
    return right(*inputs)
"""


@pytest.fixture(autouse=True)
def _this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_module.environment, "describe", lambda: {**MACHINE, "time": "now"})


def _begun(folder: Path) -> tuple[subprocess.Popen[str], Path, list[str]]:
    """A run that waits in its second cell, its report, and its options."""
    file, report, here = folder / "k.py", folder / "report.json", folder / "here"
    file.write_text(_KERNELS.format(here=str(here), go=str(folder / "go")))
    options = [
        "tests/conformance/test_properties.py::test_no_side_effects",
        "-p",
        "no:cacheprovider",
        "-q",
        "--dtype=float32",
    ]
    options += [f"--candidate=lltm={file}:{name}" for name in ("right", "waits")]
    options += ["--device=cpu", "--isolate=off"]
    run = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, f"--report={report}"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 200
    while not (here.exists() and report.exists()) and run.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert run.poll() is None, run.communicate()[0]
    return run, report, options


@pytest.mark.parametrize("ending", first_alone([signal.SIGKILL, signal.SIGTERM]), ids=["killed", "ended"])
def test_a_run_that_is_ended_is_resumed(tmp_path: Path, python: Run, ending: signal.Signals) -> None:
    run, report, options = _begun(tmp_path)
    run.send_signal(ending)
    printed, _ = run.communicate(timeout=120)
    if ending == signal.SIGTERM:
        assert run.returncode == pytest.ExitCode.INTERRUPTED
        assert "This report is partial: the run did not finish (1 of 2 cells)" in printed
    partial = Report.read(report)
    assert not partial.complete
    assert [found.backend for found in partial.cells] == ["right"]

    if ending == signal.SIGTERM:
        return  # the same kind of report is resumed in the other case

    (tmp_path / "go").touch()
    resumed = python("-m", "pytest", *options, f"--resume={report}")
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert "1 passed, 1 deselected" in resumed.stdout
    whole = Report.read(report)
    assert whole.complete
    assert [found.backend for found in whole.cells] == ["right", "waits"]
    assert whole.cells[0] == partial.cells[0], "it was not judged again"


@pytest.mark.parametrize(
    ("earlier", "says"),
    [
        (replace(HALF, plan=None), "has no plan"),
        (replace(HALF, plan=replace(PLAN, shards=2)), "is shard 1 of 2, but this run is no shard: give it the same"),
        (replace(HALF, complete=True, plan=replace(PLAN, finished=(1,), asked=1)), "lacks nothing"),
        (replace(HALF, plan=replace(PLAN, sources="other")), "of another state of the suite"),
        (replace(HALF, plan=replace(PLAN, digest="other")), "of another selection"),
        (replace(HALF, environment={**MACHINE, "torch": "2.0"}), "torch was '2.0' and is '2.13'"),
        (replace(HALF, environment={**MACHINE, "commit": None}), "commit was None and is 'abcdef'"),
    ],
    ids=["plan", "shard", "complete", "suite", "options", "torch", "commit"],
)
def test_what_is_not_this_run_is_not_resumed(tmp_path: Path, earlier: Report, says: str) -> None:
    path = tmp_path / "earlier.json"
    earlier.write(path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=says):
        Record.begin(path, PLAN, path)
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == ["earlier.json"]


def test_a_malformed_report_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "earlier.json"
    path.write_text("{")
    with pytest.raises(UsageError, match="is not JSON"):
        Record.begin(path, PLAN, path)
    assert path.read_text() == "{"


def test_the_file_is_a_partial_report_from_the_first_cell_on(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "report.json"
    record = Record.begin(path, PLAN, None)
    cells = [cell(), cell(FAIL, property="layouts"), cell(property="gradcheck")]
    record.asked = {name_of(each) for each in cells}
    for number, each in enumerate(cells[:2], 1):
        record.add([each])
        record.save()
        found = Report.read(path)
        assert not found.complete
        assert len(found.cells) == number
        assert found.why_partial() == f"the run did not finish ({number} of 3 cells)"
    assert not record.end(interrupted=False).complete, "a cell is missing although nobody interrupted the run"
    record.add([cells[2]])
    assert not record.end(interrupted=True).complete
    assert record.end(interrupted=False).complete
    assert Report.read(path).plan == replace(PLAN, asked=3, finished=(1,))


def test_a_test_that_answers_another_question_leaves_its_own_open(tmp_path: Path) -> None:
    record = Record.begin(tmp_path / "report.json", PLAN, None)
    record.asked = {name_of(cell()), name_of(cell(property="layouts"))}
    for answer in (cell(), cell()):
        record.add([answer])
    report = record.end(interrupted=False)
    assert not report.complete
    assert report.why_partial() == "the run did not finish (1 of 2 cells)"


def test_a_cell_that_was_cut_off_is_judged_again(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    record = Record.begin(path, PLAN, None)
    cut_off = cell(NO_EVIDENCE, property="layouts", figures={CUT_OFF: "Timeout >6.0s"})
    record.asked = {name_of(cell()), name_of(cut_off)}
    record.add([cell()])
    record.add([cut_off])
    assert not record.end(interrupted=False).complete, "a limit that is not the suite's ended the second"
    again = Record.begin(path, PLAN, path)
    assert again.done == {name_of(cell())}
    again.asked.add(name_of(cut_off))
    again.add([cell(property="layouts")])
    assert again.end(interrupted=False).complete


def test_a_shard_never_calls_itself_complete(tmp_path: Path) -> None:
    record = Record.begin(tmp_path / "report.json", replace(PLAN, shards=3, begun=(2,)), None)
    record.add([cell()])
    report = record.end(interrupted=False)
    assert not report.complete
    assert report.plan is not None
    assert report.plan.missing == (1, 3)


def test_what_an_earlier_run_found_wrong_stays_wrong(tmp_path: Path) -> None:
    path = tmp_path / "earlier.json"
    replace(HALF, cells=(cell(FAIL),)).write(path)
    record = Record.begin(path, PLAN, path)
    assert not record.end(interrupted=False).ok
    assert record.done == {"test_sizes[lltm-mine-cpu-float32]"}


_HOLDER = """
import sys, time
from pathlib import Path
from harness.pytest_plugin.partial_report import Record
from harness.report.shards import RunPlan
record = Record.begin(Path(sys.argv[1]), RunPlan("asked", "files"), None)
print("begun", flush=True)
time.sleep(300)
"""


@pytest.mark.long(WHOLE)
def test_two_runs_do_not_write_one_report(tmp_path: Path, conformance: Run) -> None:
    path = tmp_path / "report.json"
    command = [sys.executable, "-c", _HOLDER, str(path)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "begun\n"
        second = conformance("sizes", "--backend=python-autograd", "--operator=mlp", f"--report={path}")
        first.kill()
    assert second.returncode == pytest.ExitCode.USAGE_ERROR
    says = rf"--report {path} is being written by another run \(process {first.pid} on .*\): wait .* --report"
    assert re.search(says, second.stdout + second.stderr)
    assert (tmp_path / ".report.json.lock").exists(), "it was killed"
    record = Record.begin(path, PLAN, None)  # and is in nobody's way
    record.add([cell()])
    record.end(interrupted=False)
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not a report", "would overwrite a file that is no report"),
        ('{"schema": 7}', "would overwrite a file that is no report"),
        (None, "is a folder, but should be a file"),
    ],
)
def test_nothing_but_a_report_is_overwritten(tmp_path: Path, text: str | None, says: str) -> None:
    path = tmp_path / "precious"
    path.mkdir() if text is None else path.write_text(text)
    with pytest.raises(UsageError, match=says):
        Record.begin(path, PLAN, None)
    assert path.is_dir() if text is None else path.read_text() == text


def test_a_place_that_cannot_be_written_is_told_before_anything_is_judged(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Record.begin(tmp_path / "file" / "report.json", PLAN, None)
    with pytest.raises(UsageError, match="cannot be written"):
        Record.begin(tmp_path / "nul\0.json", PLAN, None)


def test_a_full_disk_costs_a_checkpoint_and_not_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Record.begin(tmp_path / "report.json", PLAN, None)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Report, "write", full)
        record.add([cell()])
        with pytest.raises(OSError, match="No space left"):
            record.end(interrupted=False)
    assert record.end(interrupted=False).complete
