"""The suite by its command lines: `pytest tests/conformance ...` and `python -m harness ...`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.__main__ import main
from harness.report.cell import FAIL, PASS
from harness.report.report import Report
from tests.meta.conftest import ROOT, Run, environment
from tests.meta.tiers import START, WHOLE, first_alone

CELLS = Path(__file__).with_name("wrong_cells.py")
PROPERTIES = "forward_parity vjp_parity layouts no_side_effects gradient_subsets rejects_wrong_calls"

#: candidate -> (the property that must fail, texts of its reason)
WRONG = {
    "swapped_gates": ("forward-parity", ["with input_gate and output_gate exchanged"]),
    "no_cell_cotangent": ("vjp-parity", ["if the cotangent of new_cell were ignored"]),
    "flat_at_zero": ("vjp-parity", ["gradient of weights was 0", "values zero-gates"]),
    "changes_old_cell": ("no-side-effects", ["changed 15 elements of old_cell in place"]),
    "bias_of_one_row": ("vjp-parity", ["gradient of bias was", "but should be"]),
    "expands_bias": ("rejects-wrong-calls", ["a call with bias with size 1 for 15", "it was silently accepted"]),
    "ignores_strides": ("layouts", ["input transposed", "the strides of input are ignored"]),
    "forgets_input_alone": ("gradient-subsets", ["gradient of input is missing (None) when only input requires grad"]),
}


def _candidates(*names: str) -> list[str]:
    return [f"--candidate=lltm={CELLS}:{name}" for name in names]


@pytest.fixture(scope="module")
def judged(conformance: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, str]:
    """All candidates in one run and one process: the report and what was printed."""
    path = tmp_path_factory.mktemp("judged") / "deep" / "report.json"
    chosen = ["--dtype=float32", "--isolate=off", f"--report={path}", *_candidates("right", *WRONG)]
    run = conformance(PROPERTIES, *chosen)
    assert run.returncode == 1, run.stdout + run.stderr
    return Report.read(path), run.stdout


def test_a_right_function_passes(judged: tuple[Report, str]) -> None:
    cells = [cell for cell in judged[0].cells if cell.backend == "right"]
    assert {cell.property: (cell.verdict, cell.reason) for cell in cells} == {
        name.replace("_", "-"): (PASS, "") for name in PROPERTIES.split()
    }


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_fails_in_words_that_help(judged: tuple[Report, str], name: str) -> None:
    report, printed = judged
    property, words = WRONG[name]
    cell = next(cell for cell in report.cells if (cell.backend, cell.property) == (name, property))
    assert cell.verdict == FAIL
    for word in words:
        assert word in cell.reason, f"{word!r} is not in: {cell.reason}"
        assert word in printed


def test_the_report_has_every_cell(judged: tuple[Report, str]) -> None:
    report, printed = judged
    assert report.complete
    wanted = {(name, p.replace("_", "-")) for name in ("right", *WRONG) for p in PROPERTIES.split()}
    assert {(cell.backend, cell.property) for cell in report.cells} == wanted
    assert len(report.cells) == len(wanted)
    assert {cell.device for cell in report.cells} <= {"cpu", "cuda"}
    assert all(cell.reason for cell in report.cells if cell.verdict != PASS)
    assert f"✗ fail {report.count(FAIL)}" in printed
    assert "Traceback" not in printed


def test_cells_are_those_of_the_processes_of_candidates(
    conformance: Run, judged: tuple[Report, str], tmp_path: Path
) -> None:
    """By default a candidate has two processes of its own."""
    path, names = tmp_path / "report.json", ("no_cell_cotangent", "changes_old_cell")
    run = conformance(PROPERTIES, "--dtype=float32", f"--report={path}", *_candidates(*names))
    assert run.returncode == 1, run.stdout + run.stderr

    def told(report: Report) -> dict[tuple[str, str], tuple[str, str]]:
        return {(c.backend, c.property): (c.verdict, c.reason) for c in report.cells if c.backend in names}

    assert told(Report.read(path)) == told(judged[0])


@pytest.mark.long(START)
def test_two_workers_give_the_cells_of_one(conformance: Run, tmp_path: Path) -> None:
    found = []
    for number, workers in enumerate(([], ["-n", "2", "--dist", "loadgroup"])):
        report = tmp_path / f"{number}.json"
        chosen = ["--dtype=float32", "--dtype=float64", "--isolate=off", f"--report={report}"]
        chosen += _candidates("right", "bias_of_one_row")
        assert conformance("vjp_parity gradcheck", *chosen, *workers).returncode == 1
        cells = Report.read(report).cells
        found.append([{**vars(cell), "seconds": 0} for cell in cells])
    assert found[0] == found[1]
    places = sorted((row["property"], row["dtype"]) for row in found[0])
    assert places == 2 * [("gradcheck", "float64")] + 2 * [("vjp-parity", "float32")] + 2 * [("vjp-parity", "float64")]


@pytest.mark.long(START)
def test_a_group_goes_to_one_worker(conformance: Run, tmp_path: Path) -> None:
    """pytest 9.2 changed the ids of items, so that pytest-xdist 3.8 loses the group: constraints.txt pins 9.1."""
    chosen = [f"--report={tmp_path / 'report.json'}", "--isolate=off", *_candidates("right", "bias_of_one_row")]
    printed = conformance("forward_parity vjp_parity", *chosen, "-n", "2", "--dist", "loadgroup", "-vv").stdout
    seen = re.findall(r"\[(gw\d)\].*(?:PASSED|FAILED).*\[lltm-([\w.:-]+-cpu-\w+)\]", printed)
    workers = {place: {worker for worker, its in seen if its == place} for _, place in seen}
    assert len(workers) == 8, "two candidates in four dtypes, each a group where there are few"
    assert all(len(its) == 1 for its in workers.values()), workers
    assert len(seen) == 16, "outputs and gradients of each"


@pytest.mark.long(START)
def test_a_candidate_that_dies_or_hangs_has_cells_too(conformance: Run, tmp_path: Path) -> None:
    """Even without isolation."""
    file, report = tmp_path / "k.py", tmp_path / "report.json"
    file.write_text(
        "import itertools, os, time\n"
        "def dies(*inputs): os._exit(11)\n"
        "def hangs(*inputs): time.sleep(600)\n"
        "def hangs_in_c(*inputs): any(itertools.repeat(False))\n"
    )
    chosen = [
        "--dtype=float32",
        "--isolate=off",
        f"--report={report}",
        *(f"--candidate=lltm={file}:{name}" for name in ("dies", "hangs", "hangs_in_c")),
    ]
    assert conformance("vjp_parity", *chosen, "-n", "2", "--timeout=6").returncode == 1
    dies, hangs, hangs_in_c = Report.read(report).cells
    assert (dies.verdict, dies.property) == (FAIL, "vjp-parity")
    assert "the process died while this was judged" in dies.reason
    assert hangs.verdict == "no-evidence"
    assert "did not finish in time: it hangs, or this machine is too slow" in hangs.reason
    assert hangs_in_c.verdict == FAIL
    assert "a call in it that did not return in time" in hangs_in_c.reason


@pytest.mark.long(START)
def test_a_run_without_workers_that_hangs_in_c_leaves_a_report(conformance: Run, tmp_path: Path) -> None:
    """pytest-timeout cannot end such a call; the rest of the run is for `--resume`."""
    file, report = tmp_path / "k.py", tmp_path / "report.json"
    file.write_text("import hashlib\ndef hangs(*inputs): hashlib.pbkdf2_hmac('sha256', b'', b'', 2**31 - 1)\n")
    chosen = ["--dtype=float32", "--isolate=off", f"--candidate=lltm={file}:hangs"]
    run = conformance("vjp_parity forward_parity", *chosen, f"--report={report}", "--timeout=3")
    assert run.returncode == 1
    assert "did not end in 4.5 s: a call in compiled code does not return" in run.stderr
    assert "in hangs" in run.stderr, "where it hangs"
    found = Report.read(report)
    assert [(cell.verdict, cell.reason) for cell in found.cells] == [
        (FAIL, "it hangs: a call in compiled code did not return in time")
    ]
    assert not found.complete
    conformance("vjp_parity forward_parity", *chosen, f"--resume={report}", "--timeout=3")
    assert len(Report.read(report).cells) == 2


@pytest.mark.long(WHOLE)
def test_the_time_limit_of_a_cell_is_the_only_one(conformance: Run, tmp_path: Path) -> None:
    """The ini file gives pytest a limit of its own, for cells that are not isolated."""
    file, report = tmp_path / "k.py", tmp_path / "report.json"
    file.write_text("import time\ndef slow(*inputs): time.sleep(600)\n")
    chosen = ["--dtype=float32", f"--report={report}", f"--candidate=lltm={file}:slow", "--time-limit=3"]
    conformance("forward_parity", *chosen, "-o", "timeout=1")
    (cell,) = Report.read(report).cells
    assert cell.verdict == FAIL
    assert "process was still running after" in cell.reason
    # A limit that the user asks for holds. The next cell gets its own answer, and the report says that it is partial.
    chosen[-1] = "--time-limit=60"
    conformance("forward_parity layouts", *chosen, "--timeout=2")
    found = Report.read(report)
    assert {cell.verdict for cell in found.cells} == {"no-evidence"}
    assert [cell.property for cell in found.cells] == ["forward-parity", "layouts"]
    assert not found.complete


@pytest.mark.long(WHOLE)
def test_a_run_that_stops_at_the_first_failure_is_partial(conformance: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    chosen = ["--dtype=float32", f"--report={report}", *_candidates("bias_of_one_row")]
    run = conformance("vjp_parity forward_parity", *chosen, "-x")
    assert "This report is partial" in run.stdout
    assert not Report.read(report).complete


@pytest.mark.parametrize("workers", first_alone([[], ["-n", "2"]]), ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--dtype=float3", "ERROR: unknown dtype 'float3'; did you mean 'float32'?"),
        ("--candidate=lltm={tmp}/other.py:f", "ERROR: unknown function in"),
    ],
    ids=["name", "import"],
)
def test_an_option_that_cannot_be_met_is_one_sentence(
    conformance: Run, tmp_path: Path, option: str, says: str, workers: list[str]
) -> None:
    (tmp_path / "other.py").write_text("def g(): ...\n")
    run = conformance("sizes", option.format(tmp=tmp_path), *workers)
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    output = run.stdout + run.stderr
    assert says in output
    assert len(output.strip().splitlines()) == 1, output


_AT_IMPORT = {
    "exit": ("exit(0)", "does not import: SystemExit: 0"),
    "os-exit": ("import os; os._exit(0)", "its process exited with code 0"),
    "crash": ("import ctypes; ctypes.string_at(0)", "its process died of SIGSEGV"),
    "hang": ("import time; time.sleep(600)", "its process was still running after 5 s"),
    "interrupt": ("raise KeyboardInterrupt", "does not import: KeyboardInterrupt"),
    "descriptors": ("import os; os.closerange(3, 300)", "Bad file descriptor"),
    "deletes-itself": ("import os; os.unlink(__file__); 1 / 0", "does not import: "),
    "unreadable": (
        "class E(Exception):\n    __str__ = None\nraise E",
        "does not import: E: its message cannot be read",
    ),
    "output": ("import sys; sys.stdout.write('x' * 10**8); exit()", "does not import: SystemExit"),
    "kills-its-group": ("import os; os.killpg(0, 9)", "its process died of SIGKILL"),
}


@pytest.fixture(scope="module")
def accidents(conformance: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, str]:
    """One run of a right candidate beside all that do not import."""
    folder = tmp_path_factory.mktemp("accidents")
    for name, (source, _) in _AT_IMPORT.items():
        (folder / f"{name}.py").write_text(f"{source}\ndef {name.replace('-', '_')}(*inputs): ...\n")
    options = [f"--candidate=lltm={folder}/{name}.py:{name.replace('-', '_')}" for name in _AT_IMPORT]
    options += [*_candidates("right"), "--dtype=float32", "--time-limit=5", f"--report={folder}/report.json"]
    run = conformance("forward_parity", *options)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    return Report.read(folder / "report.json"), run.stdout


@pytest.mark.parametrize("accident", _AT_IMPORT)
def test_what_a_candidate_does_at_import_is_one_cell(accidents: tuple[Report, str], accident: str) -> None:
    """The run ends with a complete report, and the exit code is not 0."""
    says = _AT_IMPORT[accident][1]
    report, printed = accidents
    (cell,) = (cell for cell in report.cells if cell.backend == accident.replace("-", "_"))
    assert (cell.property, cell.verdict) == ("imports", FAIL)
    assert says in cell.reason
    assert says in printed


def test_accidents_at_import_cost_the_others_nothing(accidents: tuple[Report, str]) -> None:
    report, _ = accidents
    assert report.complete
    assert len(report.cells) == len(_AT_IMPORT) + 1
    assert [(cell.property, cell.verdict) for cell in report.cells if cell.backend == "right"] == [
        ("forward-parity", PASS)
    ]


@pytest.mark.parametrize("workers", first_alone([[], ["-n", "2"]]), ids=["alone", "workers"])
@pytest.mark.long(WHOLE)
def test_a_run_of_one_candidate_that_crashes_at_import(conformance: Run, tmp_path: Path, workers: list[str]) -> None:
    source, says = _AT_IMPORT["crash"]
    file, report = tmp_path / "k.py", tmp_path / "report.json"
    file.write_text(f"{source}\ndef f(*inputs): ...\n")
    run = conformance("sizes", f"--candidate=lltm={file}:f", f"--report={report}", *workers)
    assert run.returncode == pytest.ExitCode.TESTS_FAILED
    found = Report.read(report)
    assert found.complete
    (cell,) = found.cells
    assert (cell.property, cell.verdict) == ("imports", FAIL)
    assert says in cell.reason


#: A shell may have started this process with SIGINT ignored, which children inherit. SIGUSR1 shows where it is.
_INTERRUPTIBLE = """
import faulthandler, signal, sys, pytest
faulthandler.register(signal.SIGUSR1)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main(sys.argv[1:]))
"""


#: It leaves its process id, and sleeps for much longer than the run may take to end.
_WAITS = """
import os, time
from pathlib import Path

def waits(*inputs):
    Path({here!r}).with_name("being-written").write_text(str(os.getpid()))
    Path({here!r}).with_name("being-written").rename({here!r})
    time.sleep(3600)
"""


def test_an_interrupted_run_leaves_a_report(tmp_path: Path) -> None:
    """The first candidate is judged; Ctrl-C comes during the second, whose process ends with the run."""
    file, report, here, printed = (tmp_path / name for name in ("k.py", "report.json", "here", "printed"))
    file.write_text(_WAITS.format(here=str(here)))
    options = ["-p", "no:cacheprovider", "-q", "--dtype=float32", f"--report={report}", *_candidates("right")]
    options.append("--sandbox=off")  # the candidate leaves a file outside of its scratch folder
    command = [sys.executable, "-c", _INTERRUPTIBLE, "tests/conformance/test_properties.py::test_vjp_parity", *options]
    with printed.open("w") as output:  # a pipe would be open until every process that has it has ended
        run = subprocess.Popen(
            [*command, f"--candidate=lltm={file}:waits"],
            cwd=ROOT,
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    end = time.monotonic() + 200
    while not here.exists() and run.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    assert here.exists(), printed.read_text()
    run.send_signal(signal.SIGINT)
    _ended(run, 180, printed)
    assert run.returncode == pytest.ExitCode.INTERRUPTED
    assert not psutil.pid_exists(int(here.read_text())), "the candidate outlived the run"
    assert "This report is partial" in printed.read_text()
    found = Report.read(report)
    assert not found.complete
    assert [cell.backend for cell in found.cells] == ["right"]


def _ended(run: subprocess.Popen[bytes], seconds: float, printed: Path) -> None:
    """Wait for its end. One that does not end shows its stack, and is ended."""
    try:
        run.wait(seconds)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGUSR1)
        time.sleep(1)
        run.kill()
        run.wait()
        pytest.fail(f"it had not ended after {seconds:g} s:\n{printed.read_text()}")


def test_show_draws_merges_and_tells_what_failed(python: Run, judged: tuple[Report, str], tmp_path: Path) -> None:
    whole, good, merged = (tmp_path / name for name in ("whole.json", "good.json", "merged.json"))
    report = judged[0]
    report.write(whole)
    passed = tuple(cell for cell in report.cells if cell.verdict == PASS)
    Report(report.environment, True, passed, suite=report.suite, required=report.required).write(good)

    run = python("-m", "harness", "show", whole, good, "-o", merged)
    assert (run.returncode, run.stderr) == (1, "")
    assert "forward-parity" in run.stdout
    assert "if the cotangent of new_cell were ignored" in run.stdout
    without_a_plan = {name: value for name, value in json.loads(whole.read_text()).items() if name != "plan"}
    assert json.loads(merged.read_text()) == without_a_plan, "a plan is that of one run"
    run = python("-m", "harness", "show", good, "--view", "parity", "--markdown")
    assert (run.returncode, run.stderr) == (0, "")
    rows = [line.split("|")[1].strip() for line in run.stdout.splitlines() if line.startswith("| ")]
    assert rows == ["property", "forward-parity", "vjp-parity"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no report"),
        ("{", "is not JSON"),
        ("[]", "has schema 'list', but should have 1"),
        ('{"schema": 99}', "has schema 99, but should have 1"),
        ('{"schema": 1, "environment": {}, "complete": true, "cells": []}', "environment lacks torch, python, gpu"),
        (
            '{"schema": 1, "environment": {}, "complete": true, "cells": [{}]}',
            "cells[0] lacks operator, backend, device",
        ),
        ('{"schema": 1, "environment": {}, "complete": true, "cells": [3]}', "cells[0] was 3, but should be an object"),
    ],
)
def test_show_says_in_a_sentence_what_is_wrong_with_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    path = tmp_path / "report.json"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(sys, "argv", ["harness", "show", str(path)])
    assert main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {path}" if text else "error: ")
    assert says in line


def test_show_of_a_folder_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["harness", "show", str(ROOT)])
    assert main() == 2
    assert "cannot be read: Is a directory" in capsys.readouterr().err
