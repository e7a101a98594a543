"""A fleet judges each candidate once, whatever dies."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import fleet
from harness.errors import Broken, UsageError
from harness.fleet import local
from harness.fleet.outcome import CandidateResult
from harness.report.cell import FAIL, PASS
from tests.meta.conftest import ROOT, environment
from tests.meta.fleet.conftest import FAKE, lines, obeys

Log = Callable[[], list[str]]


def _judged(*candidates: dict[str, str], workers: int = 2, **options: object) -> dict[str, CandidateResult]:
    found = fleet.judge(candidates, device="cpu", workers=workers, command=FAKE, **options)  # type: ignore[arg-type]
    return {result.id: result for result in found}


def test_what_kills_its_judge_costs_its_own_verdict_alone(log: Log, tmp_path: Path) -> None:
    once = tmp_path / "once"
    found = _judged(
        obeys("right"),
        obeys("crash", "crash"),
        obeys("wrong", "wrong"),
        obeys("kill-worker", "kill-worker"),
        obeys("once", f"kill-worker-once {once}"),
        obeys("refuse", "refuse"),
        obeys("silent", "silent"),
    )
    assert {id: (result.verdict, result.right, result.score, result.attempts) for id, result in found.items()} == {
        "right": (PASS, True, 1.0, 1),
        "wrong": (FAIL, False, 0.0, 1),
        "crash": ("broken", False, 0.0, 2),
        "kill-worker": ("broken", False, 0.0, 2),
        "once": (PASS, True, 1.0, 2),
        "refuse": ("refused", False, 0.0, 1),
        "silent": ("broken", False, 0.0, 2),
    }
    assert found["crash"].sentence == "Broken: the judge was ended by SIGKILL each of 2 times"
    assert found["kill-worker"].sentence == "Broken: the worker died each of 2 times"
    assert found["silent"].sentence == (
        "Broken: the judge ended with exit code 1 and without a complete report each of 2 times; "
        "its last line of output was: the last words"
    )
    assert found["refuse"].sentence == "Not judged: ERROR: unknown function 'f'"
    assert found["wrong"].read_report().count(FAIL) == 1
    twice = ["crash", "kill-worker", "once", "silent"]
    assert Counter(log()) == {f"# {id}": 2 if id in twice else 1 for id in found}


def test_a_candidate_that_takes_too_long_is_ended(log: Log) -> None:
    found = _judged(obeys("slow", "wait 60"), obeys("right"), limit=2.0)
    assert (found["slow"].verdict, found["slow"].attempts, found["slow"].score) == ("timeout", 1, 0.0)
    assert found["slow"].sentence.startswith("Too slow: the judge was ended after 2 s")
    assert found["right"].right


def test_a_worker_that_is_stopped_is_ended(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate without a sandbox may stop its worker, which then keeps no time limit."""
    monkeypatch.setattr("harness.fleet.schedule._MARGIN", 0.5)
    found = _judged(obeys("stop", "stop-worker"), obeys("right"), limit=1.0)
    assert (found["stop"].verdict, found["stop"].sentence) == ("broken", "Broken: the worker died each of 2 times")
    assert found["right"].right


def test_a_result_is_there_before_the_last_candidate_is_judged(log: Log) -> None:
    results = fleet.judge([obeys("a"), obeys("b", "wait 60")], device="cpu", workers=2, command=FAKE)
    assert next(results).id == "a"
    results.close()


def test_a_second_run_judges_only_what_is_new_or_changed(log: Log, tmp_path: Path) -> None:
    results = tmp_path / "results.sqlite"
    first = _judged(obeys("a"), obeys("b", "wrong"), results=results)
    assert len(log()) == 2
    again = _judged(obeys("a"), obeys("b", "now right"), obeys("c"), results=results)
    assert sorted(log()) == ["# a", "# b", "# b", "# c"]
    assert again["a"] == first["a"]
    assert again["b"].right
    assert not first["b"].right
    with pytest.raises(UsageError, match=r"were judged with .* give the same options, or name another file"):
        _judged(obeys("a"), results=results, dtypes=["float64"])


def test_two_fleets_do_not_share_a_file(log: Log, tmp_path: Path) -> None:
    results = tmp_path / "results.sqlite"
    running = fleet.judge([obeys("a"), obeys("b")], device="cpu", workers=1, command=FAKE, results=results)
    next(running)
    with pytest.raises(UsageError, match="in use by another fleet"):
        _judged(obeys("c"), results=results)
    running.close()
    assert _judged(obeys("a"), obeys("b"), results=results).keys() == {"a", "b"}


@pytest.mark.parametrize("content", [b"not a database" * 100, b""])
def test_a_file_of_something_else_is_left_alone(log: Log, tmp_path: Path, content: bytes) -> None:
    results = tmp_path / "results.sqlite"
    results.write_bytes(content)
    if not content:
        with sqlite3.connect(results) as data:
            data.execute("create table mine (x)")
    before = results.read_bytes()
    with pytest.raises(UsageError, match="name another"):
        _judged(obeys("a"), results=results)
    assert results.read_bytes()[:18] == before[:18]


def test_wrong_options_end_the_fleet_and_leave_no_verdict(log: Log, tmp_path: Path) -> None:
    results = tmp_path / "results.sqlite"
    with pytest.raises(UsageError, match="the first 3 candidates were refused alike: Not judged: ERROR: unknown"):
        _judged(*(obeys(str(number), "refuse") for number in range(5)), results=results, dtypes=["nonsense"])
    found = _judged(*(obeys(str(number)) for number in range(5)), results=results)
    assert [result.right for result in found.values()] == [True] * 5


def test_workers_that_do_not_start_end_the_fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.sys, "executable", "/bin/false")  # type: ignore[attr-defined]
    with pytest.raises(Broken, match="the workers of the fleet do not start; the last one said: it said nothing"):
        _judged(obeys("a"))


_FLEET = """
import sys
from pathlib import Path
from harness.fleet import api, input
from tests.meta.fleet.conftest import FAKE
items = input.read(Path(sys.argv[1]), {})
for result in api.run(items, api.FleetPlan("cpu", workers=2, command=FAKE), Path(sys.argv[2])):
    print(result.id, flush=True)
"""


def test_a_fleet_that_is_killed_goes_on_where_it_stopped(log: Log, tmp_path: Path) -> None:
    """kill -9 of the fleet in the middle, with a worker killed before: none is lost, none has two verdicts."""
    names = [f"c{number}" for number in range(12)]
    given = lines(tmp_path / "given.jsonl", *(obeys(name, "wait 0.2") for name in names))
    results = tmp_path / "results.sqlite"
    command = [sys.executable, "-c", _FLEET, str(given), str(results)]
    with subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline().strip() for _ in range(3)]
        worker = _children(process.pid)[0]
        os.kill(worker, signal.SIGKILL)
        seen += [process.stdout.readline().strip() for _ in range(2)]
        process.kill()
        seen += process.stdout.read().split()
    _until(lambda: not _judges(tmp_path), "the judges of a killed fleet end")
    kept = _states(results)
    assert set(seen) <= {name for name, state in kept.items() if state == "done"}
    before = len(log())
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert sorted(done.stdout.split()) == sorted(names)
    assert set(_states(results).values()) == {"done"}
    judged_later = log()[before:]
    finished = {f"# {name}" for name, state in kept.items() if state == "done"}
    assert not finished & set(judged_later), "none of those that had a verdict is judged again"
    assert len(judged_later) == len(names) - len(finished)


def _states(path: Path) -> dict[str, str]:
    with sqlite3.connect(path) as data:
        return dict(data.execute("select id, state from candidates"))


def _children(parent: int) -> list[int]:
    return [int(number) for number in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _judges(folder: Path) -> list[str]:
    """Processes of the fake judge that work on a candidate below the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "fake_judge.py" in text and str(folder) in text:
            found.append(text)
    return found


def _until(holds: Callable[[], bool], what: str) -> None:
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError(what)
