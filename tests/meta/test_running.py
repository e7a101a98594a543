"""`python -m harness judge` uses all cores where that is quicker, and starts the candidate's process first of all."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from harness.cli import judge
from harness.running import forking, launching, sandbox
from tests.meta.conftest import ROOT, environment

_KERNEL = "def f(*inputs): ...\n"


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    launching.end()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What pytest is told, by a judge that is not run. No process is started, and none was before."""
    options: list[str] = []
    monkeypatch.setattr(pytest, "main", lambda given: options.extend(given) or 0)
    monkeypatch.setattr(launching, "zygotes", {})
    monkeypatch.setattr(launching, "begin", lambda program: None)
    monkeypatch.setattr(launching, "keep_runner", lambda folder: None)
    return options


@pytest.mark.parametrize(
    ("cores", "options", "spread"),
    [
        (16, ["--candidate", "lltm={file}:f"], True),
        (2, ["--candidate", "lltm={file}:f"], False),
        (2, ["--candidate", "lltm={file}:f", "--candidate", "lltm={file}:g"], True),
        (2, [], True),
        (16, ["--candidate", "lltm={file}:f", "--device", "cpu"], True),
        (16, ["--candidate", "lltm={file}:f", "--dtype", "float32"], False),
        (16, ["--candidate", "lltm={file}:f", "--dtype=float32"], False),
        (16, ["--candidate", "lltm={file}:f", "-k", "sizes"], False),
        (16, ["--candidate", "lltm={file}:f", "-ksizes"], False),
        (16, ["--candidate", "lltm={file}:f", "--isolate=off"], False),
        (16, ["--candidate", "lltm={file}:f", "--pdb"], False),
    ],
)
def test_a_whole_judgement_is_spread_over_many_cores(
    cores: int, options: list[str], spread: bool, tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.py"
    file.write_text(_KERNEL)
    options = [option.format(file=file) for option in options]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    judge.main(options)
    own = told[: len(told) - len(options)]
    assert told[len(own) :] == options
    assert ("-n" in own) == spread
    if spread:
        assert own[own.index("-n") + 1] == "auto"


@pytest.mark.parametrize("has_forks", [True, False])
@pytest.mark.parametrize(
    ("options", "is_early"),
    [
        (["--candidate=lltm={file}:f"], True),
        (["--candidate", "{file}:f", "--reference", "{file}:f"], True),
        (["--candidate=lltm={file}:f", "--isolate", "off"], False),
        (["--candidate=lltm={file}:f", "--help"], False),
        (["--candidate=lltm=gone.py:f"], False),
        (["--candidate"], False),
        ([], False),
    ],
)
def test_a_candidates_process_starts_before_torch_is_imported(
    options: list[str],
    is_early: bool,
    has_forks: bool,
    tmp_path: Path,
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "k.py"
    file.write_text(_KERNEL)
    monkeypatch.setattr(forking, "AVAILABLE", has_forks)
    started: list[str] = []
    monkeypatch.setattr(launching, "begin", lambda program: started.append("the process"))
    monkeypatch.setattr(launching, "keep_runner", lambda folder: started.append("the one that forks it"))
    judge.main([option.format(file=file) for option in options])
    what = "the one that forks it" if has_forks else "the process"
    assert started == [what] * is_early


def test_where_one_that_forks_is_there_the_process_itself_is_started(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "k.py"
    file.write_text(_KERNEL)
    programs: list[launching.Program] = []
    monkeypatch.setattr(launching, "begin", programs.append)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        launching.zygotes[launching.RUNNER] = forking.Zygote(ours)
        judge.main(["--candidate", f"lltm={file}:f"])
    assert [program.of for program in programs] == [launching.RUNNER]


def _ended(process: subprocess.Popen[bytes], connection: Connection) -> None:
    process.kill()
    process.wait()
    connection.close()
    assert process.stdout is not None
    process.stdout.close()


def test_the_process_that_was_started_is_the_one_that_is_used(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(_KERNEL)
    program = launching.Program((sys.executable, "-c", "import time; time.sleep(60)"), tmp_path, {"A": "1"})
    other = launching.Program(program.command, tmp_path, {"A": "2"})
    launching.begin(program)
    ((_, early, _),) = launching._early
    process, connection = launching.launch(program)
    assert process is early
    _ended(process, connection)
    launching.begin(program)
    ((_, early, _),) = launching._early
    process, connection = launching.launch(other)
    assert process is not early, "another environment, another process"
    assert early.poll() is not None, "and the one that nobody wants has ended"
    _ended(process, connection)


def test_what_starts_it_imports_no_torch() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import sys, harness.cli.judge; print('torch' in sys.modules)"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert run.stdout.strip() == "False"


def test_a_folder_that_another_run_has_just_removed_disturbs_nobody(cache_root: Path) -> None:
    (cache_root / "scratch").mkdir(parents=True)
    (cache_root / "scratch" / "gone").symlink_to("nowhere")
    assert sandbox.scratch("lltm=k:f").is_dir()
