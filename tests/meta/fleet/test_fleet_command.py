"""`python -m harness fleet`: exit codes, what it prints, and one run with the real judge."""

from __future__ import annotations

import io
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli.main import main
from harness.fleet import CandidateResult, api
from harness.fleet.display import Display
from tests.meta.conftest import environment
from tests.meta.fleet.conftest import FAKE, lines, obeys

Log = Callable[[], list[str]]

REFERENCE = """
import torch
from torch import Tensor

def double(x: Tensor) -> Tensor:
    return x * 2

def example():
    return (torch.randn(4, 6),)
"""
#: Candidates, and what the first words of their sentences are.
REAL = {
    "right": ("def f(x):\n    return x + x\n", "Values are right in float32."),
    "wrong": ("def f(x):\n    return x * 2.01\n", "Wrong: values are wrong in float32"),
    "exits": ("import os\ndef f(x):\n    os._exit(0)\n", "Wrong: values are wrong in float32"),
    "hangs": ("def f(x):\n    while True: pass\n", "Wrong: values are wrong in float32"),
    "unparsable": ("def f(x:\n", "Nothing was judged: "),
}


@pytest.fixture
def faked(log: Log, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Log:
    """The command judges by the fake judge, and writes into an empty folder."""
    monkeypatch.setattr(api, "JUDGE", FAKE)
    monkeypatch.chdir(tmp_path)
    return log


def _fleet(given: Path, *options: str) -> int:
    return main(["fleet", str(given), "--cold", "--device=cpu", "--workers=2", *options])


@pytest.mark.parametrize(
    ("words", "options", "code"),
    [
        (["", "wrong"], [], 0),
        (["", "wrong"], ["--strict"], 1),
        ([""], ["--strict"], 0),
        (["", "crash"], [], 1),
        (["", "refuse"], [], 1),
        (["refuse", "refuse", "refuse"], [], 2),
    ],
)
def test_the_exit_code(faked: Log, tmp_path: Path, words: list[str], options: list[str], code: int) -> None:
    given = lines(tmp_path / "given.jsonl", *(obeys(f"c{number}", word) for number, word in enumerate(words)))
    assert _fleet(given, *options) == code


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ("--workers=-1", "--workers: was '-1', but should be a whole number from 1 to"),
        ("--per-gpu=0", "--per-gpu: was '0', but should be a whole number from 1 to"),
        ("--limit=nan", "--limit: was 'nan', but should be a number of seconds above 0"),
    ],
)
def test_wrong_values_of_options_are_told(
    faked: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, why: str
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        _fleet(lines(tmp_path / "given.jsonl", obeys("a")), option)
    assert why in capsys.readouterr().err


def test_options_that_exclude_each_other_are_told(
    faked: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _fleet(lines(tmp_path / "given.jsonl", obeys("a")), "--operator=a", "--reference=b") == 2
    assert "a candidate is judged by one of them" in capsys.readouterr().err


def test_without_a_gpu_cuda_is_unavailable(
    faked: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["fleet", str(lines(tmp_path / "given.jsonl", obeys("a"))), "--device=cuda"]) == 3
    assert "no GPU" in capsys.readouterr().err


def test_each_worker_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-6a")
    assert api.local.gpus() == ["4", "GPU-6a"]
    given = [place.variables["CUDA_VISIBLE_DEVICES"] for place in api.local.places(4, api.local.gpus())]
    assert given == ["4", "GPU-6a", "4", "GPU-6a"]
    assert all("CUDA_VISIBLE_DEVICES" not in place.variables for place in api.local.places(2))


def test_lines_are_printed_where_there_is_no_terminal(
    faked: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = lines(tmp_path / "given.jsonl", obeys("a\x1b[31m\n"), obeys("crash", "crash"), obeys("wrong", "wrong"))
    _fleet(given)
    first = capsys.readouterr().out
    assert "\x1b" not in first
    assert "pass 1.000" in first
    assert "a\\x1b[31m: Values are right in float32." in first
    assert "crash: worker-" in first
    assert "3 of 3 candidates judged, 1 right: pass 1, fail 1, broken 1" in first
    assert len(first.splitlines()) == 6
    _fleet(given)
    assert "3 of 3 candidates judged (3 were there before), 1 right" in capsys.readouterr().out
    assert len(faked()) == 4


def test_a_terminal_shows_the_queue_the_throughput_and_the_failures() -> None:
    stream, now = io.StringIO(), iter(range(100))
    console = Console(file=stream, force_terminal=True, width=100, color_system=None)
    wrong = CandidateResult("b\x1b]0;x\x07", 1, "w", False, "fail", 0.25, "Wrong: values", 1, 2.0, 1.0, "", "")
    with Display(10, console, clock=lambda: float(next(now))) as display:
        display.started("a", "w")
        display.started("b", "v")
        display.finished(wrong)
        display.tick()
    shown = stream.getvalue()
    assert "1 of 10 judged" in shown
    assert "queue 8" in shown
    assert "running 1" in shown
    assert "30.0 a minute" in shown
    assert "✗ fail 0.250 2.0s b\\x1b]0;x\\x07: Wrong: values" in shown
    assert "\x1b]0;" not in shown


def test_an_interrupted_fleet_says_how_to_go_on(log: Log, tmp_path: Path) -> None:
    given = lines(tmp_path / "given.jsonl", obeys("a"), obeys("b", "wait 60"))
    program = f"from harness.fleet import api; api.JUDGE = {FAKE!r}; from harness.cli.main import main; exit(main())"
    command = [sys.executable, "-c", program, "fleet", str(given), "--cold", "--device=cpu", "--workers=2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), text=True, **pipes) as process:
        assert process.stdout is not None
        assert "a: " in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on where it stopped: reports/fleet.sqlite" in said
    with sqlite3.connect(tmp_path / "reports" / "fleet.sqlite") as data:
        assert dict(data.execute("select id, state from candidates")) == {"a": "done", "b": "queued"}


def test_results_as_parquet(faked: Log, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = lines(tmp_path / "given.jsonl", obeys("a"), obeys("b", "crash"))
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        assert _fleet(given, "--parquet=out.parquet") == 3
        assert "Parquet needs pyarrow" in capsys.readouterr().err
        assert faked() == []
        return
    assert _fleet(given, "--parquet=out.parquet") == 1
    rows = parquet.read_table("out.parquet").to_pylist()
    assert {row["id"]: (row["verdict"], row["exit_code"]) for row in rows} == {"a": ("pass", 0), "b": ("broken", None)}


def test_the_real_judge_in_a_warm_worker(tmp_path: Path) -> None:
    """Candidates that are right, wrong, end their process, hang or do not parse: one verdict each, in one worker."""
    (tmp_path / "slow.py").write_text(REFERENCE)
    by = {"function": "f", "reference": f"{tmp_path}/slow.py:double", "example": f"{tmp_path}/slow.py:example"}
    given = lines(tmp_path / "given.jsonl", *({"id": id, "source": text, **by} for id, (text, _) in REAL.items()))
    options = ["--device=cpu", "--dtype=float32", "--property=forward-parity", "--workers=1"]
    command = [sys.executable, "-m", "harness", "fleet", str(given), *options, "--", "--time-limit=2"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=560
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with sqlite3.connect(tmp_path / "reports" / "fleet.sqlite") as data:
        rows = {row[0]: row[1:] for row in data.execute("select id, sentence, score, attempts, report from candidates")}
    for id, (_, words) in REAL.items():
        sentence, score, attempts, report = rows[id]
        assert sentence.startswith(words)
        assert (score, attempts) == (1.0 if id == "right" else 0.0, 1)
        assert '"complete": true' in report
    assert "does not import" in rows["unparsable"][0]
    assert "exited with code 0 in forward" in rows["exits"][3]
    assert "was still running after 2 s in forward" in rows["hangs"][3]
