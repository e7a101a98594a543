"""`judge` by a server that stays: the same verdicts, the user's folder and signals, and no way in for a candidate."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from harness.report.report import Report
from harness.running import forking, sandbox, serving
from tests.meta.conftest import environment
from tests.meta.tiers import first_alone

#: See `forking.AVAILABLE`.
pytestmark = pytest.mark.skipif(not forking.AVAILABLE, reason="processes are not forked without Linux")

FILE = """
import os, time
import torch
from torch import Tensor

def slow(x: Tensor) -> Tensor:
    return x * 2

def args():
    return (torch.randn(4, 6),)

def right(x):
    return x + x

def wrong(x):
    return x * 2.01

def hangs(x):
    with open("/proc/self/comm", "w") as name:  # of the process, for who waits until it hangs
        name.write("hangs")
    time.sleep(600)

def looks(x):
    raise ValueError(f"there is {os.listdir(STATE)}")
"""
JUDGE = ("--reference=k.py:slow", "--example=k.py:args", "--device=cpu", "--dtype=float32", "--property=forward-parity")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's folder, with the folder of the state in it."""
    found = tmp_path_factory.mktemp("u")
    (found / "k.py").write_text(FILE.replace("STATE", repr(str(found / "s" / "lltm-conformance"))))
    return found


@pytest.fixture(scope="module")
def variables(folder: Path) -> dict[str, str]:
    return environment(XDG_STATE_HOME=str(folder / "s"), XDG_CACHE_HOME=str(folder / "cache"))


@pytest.fixture(scope="module")
def server(folder: Path, variables: dict[str, str]) -> Iterator[psutil.Process]:
    """A server for commands with these variables."""
    command = [sys.executable, "-m", "harness", "serve"]
    said = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True, timeout=200)
    process = psutil.Process(int(said.stdout.partition("process ")[2].partition(";")[0]))
    children = process.children(recursive=True)
    assert len(children) == 2, "those from which candidates, and those that judge beside them, are forked"
    yield process
    done = subprocess.run([*command, "--stop"], env=variables, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "1 server stopped\n"
    assert psutil.wait_procs([process, *children], timeout=60)[1] == []
    assert not list((folder / "s").rglob("*.socket"))


@pytest.fixture
def here(
    server: psutil.Process, folder: Path, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> psutil.Process:
    """This process is a command of that user, in the user's folder."""
    monkeypatch.chdir(folder)
    for name in set(os.environ) - set(variables):
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return server


@pytest.mark.parametrize(("name", "code"), first_alone([("wrong", 1), ("right", 0), ("nothing", 4)]))
def test_the_verdict_and_the_output_are_those_of_a_new_process(
    here: psutil.Process, variables: dict[str, str], capfd: pytest.CaptureFixture[str], name: str, code: int
) -> None:
    arguments = [f"--candidate=k.py:{name}", *JUDGE, "--report=served.json"]
    assert serving.judged(arguments) == code
    served = capfd.readouterr()
    program = f"import sys; from harness.cli.judge import judge; sys.exit(judge({arguments!r}))"
    new = subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False, timeout=200
    )
    assert new.returncode == code
    for one, other in ((served.out, new.stdout), (served.err, new.stderr)):
        assert one.splitlines()[:-1] == other.splitlines()[:-1]  # the last line has the time
    if code != 4:
        assert Report.read(Path("served.json")).cells[0].verdict == ("pass" if code == 0 else "fail")


def _heed_interrupts() -> None:
    """A shell that starts the tests in the background has them ignore SIGINT, and what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _once_it_hangs(server: psutil.Process, before: set[int]) -> list[psutil.Process]:
    """The processes that the server has started since, as soon as the candidate is in its call."""
    deadline = time.monotonic() + 60
    while True:
        started = [child for child in server.children(recursive=True) if child.pid not in before]
        with suppress(psutil.NoSuchProcess):
            if any(child.name() == "hangs" for child in started):
                return started
        assert time.monotonic() < deadline, "the candidate was never called"
        time.sleep(0.05)


def test_a_signal_reaches_the_judge(here: psutil.Process, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "harness", "judge", "--candidate=k.py:hangs", *JUDGE, "--report=cut.json"]
    before = {child.pid for child in here.children(recursive=True)}
    with subprocess.Popen(
        command,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=_heed_interrupts,  # noqa: PLW1509 - it takes no lock
    ) as run:
        started = _once_it_hangs(here, before)
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=60)
    assert run.returncode == 2
    assert not Report.read(Path("cut.json")).complete
    assert psutil.wait_procs(started, timeout=60)[1] == []


def test_what_a_command_leaves_behind_ends(here: psutil.Process, variables: dict[str, str]) -> None:
    command = [sys.executable, "-m", "harness", "judge", "--candidate=k.py:hangs", *JUDGE, "--report=gone.json"]
    before = {child.pid for child in here.children(recursive=True)}
    with subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
        started = _once_it_hangs(here, before)
        run.kill()
    assert psutil.wait_procs(started, timeout=60)[1] == []


@pytest.mark.skipif(bool(sandbox.why_none()), reason="bubblewrap is not installed or not permitted here")
def test_a_candidate_does_not_reach_the_server(here: psutil.Process, folder: Path) -> None:
    """It does not see the socket; and if it did, the server would not listen to it."""
    assert serving.judged(["--candidate=k.py:looks", *JUDGE, "--report=seen.json"]) == 1
    assert "there is []" in Report.read(Path("seen.json")).cells[0].reason
    path = serving.place(os.environ)
    program = "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1]); "
    program += "s.send(b'{\"stop\": true}'); print(s.recv(100))"
    sandboxed = [
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--unshare-pid",
        sys.executable,
        "-c",
        program,
        path,
    ]
    said = subprocess.run(sandboxed, capture_output=True, check=False)
    assert said.stdout == b"b''\n" or b"BrokenPipe" in said.stderr or b"ConnectionReset" in said.stderr
    assert here.is_running()
    connection = serving.connected()
    assert connection is not None
    connection.close()


def test_who_would_get_something_else_from_the_server_finds_none(
    here: psutil.Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed:
        changed.setenv("OMP_NUM_THREADS", "17")
        assert serving.connected() is None
    with monkeypatch.context() as changed:
        changed.setattr(sys, "executable", "another")
        assert serving.connected() is None
    with monkeypatch.context() as changed:
        changed.setattr(serving, "_ROOT", tmp_path)
        for name in serving._PACKAGES:
            (tmp_path / name).mkdir()
        before = serving.identity(os.environ)
        (tmp_path / "harness" / "new.py").touch()
        assert serving.identity(os.environ) != before
    assert serving.judged(["--pdb"]) is None
    found = serving.connected()
    assert isinstance(found, socket.socket)
    found.close()


def test_nothing_is_served_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", ".")  # the path of a socket is short
    assert serving.judged(["--collect-only"]) is None
    (tmp_path / "lltm-conformance").mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as left:
        left.bind(str(serving.place(os.environ)))  # as a server leaves it that was killed
    assert serving.judged(["--collect-only"]) is None
