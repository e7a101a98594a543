"""A process that is forked into a sandbox is where one would be that bubblewrap had started, and may do as little."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.running import forking, launching, sandbox, suite_process
from tests.meta.conftest import ROOT, environment

#: See `forking.AVAILABLE`.
pytestmark = pytest.mark.skipif(not forking.AVAILABLE, reason="processes are not forked without Linux")

#: What a process is asked, and what it answers. `serve` is what `harness.executing.runner` does with torch.
PROGRAM = """
import json, os, signal, socket, sys, time
from multiprocessing.connection import Connection
from pathlib import Path

def facts():
    status = [line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()]
    wanted = ("Cap", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups", "SigIgn", "SigBlk", "SigCgt", "Threads")
    mounts = [line.split(" ", 3)[3].split(" - ") for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    places = ("/", "/tmp", "/dev/shm", os.getcwd(), os.environ["SECRET"])
    return {
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in os.listdir("/proc/self/ns")},
        "status": {name: value.split() for name, value in status if name.startswith(wanted)},
        "mounts": sorted([first.split(" ")[1:3], last.split(" ")[0]] for first, last in mounts),
        "writable": [place for place in places if os.access(place, os.W_OK)],
        "secret": os.listdir(os.environ["SECRET"]),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "session": os.getsid(0) > 0,
        "open": len(os.listdir("/proc/self/fd")),
        "others": sorted(name for name in os.listdir("/proc") if name.isdigit() and int(name) > 9),
        "parent_outside": os.getppid() > 9,
        "seen": os.path.isdir(f"/proc/{os.environ['OUTSIDE']}"),
    }

def main(descriptor):
    connection = Connection(descriptor)
    while True:
        match connection.recv_bytes().decode():
            case "facts": connection.send_bytes(json.dumps(facts()).encode())
            case "say": print("said", flush=True); connection.send_bytes(b"")
            case "exit": sys.exit(3)
            case "crash": os.kill(os.getpid(), signal.SIGABRT)
            case "sleep": time.sleep(600)

if __name__ == "__main__":
    if sys.argv[1] == "fork":
        sys.path.insert(0, sys.argv[2])
        import zygote
        zygote.serve(socket.socket(fileno=int(sys.argv[3])), main)
    else:
        main(int(sys.argv[1]))
"""
Launch = Callable[[str, str], tuple[launching.Process, Connection]]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launch]:
    """Start the program as `launching` starts a runner: new, or forked; in a sandbox, or in none."""
    program, folder, secret = tmp_path / "program.py", tmp_path / "scratch", tmp_path / "state"
    program.write_text(PROGRAM)
    for place in (folder, secret):
        place.mkdir()
    (secret / "key").touch()
    monkeypatch.setenv("SECRET", str(secret))
    monkeypatch.setenv("OUTSIDE", str(os.getpid()))
    monkeypatch.setattr(sandbox, "state_root", lambda: secret)
    zygote, theirs = forking.pair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", program, "fork", ROOT / "harness" / "executing", str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment(),
        )
    started = []

    def launched(how: str, choice: str) -> tuple[launching.Process, Connection]:
        monkeypatch.setattr(launching, "zygotes", {launching.RUNNER: zygote} if how == "forked" else {})
        command = sandbox.command([sys.executable, "-P", str(program)], folder, choice)
        found = launching.launch(launching.Program(tuple(command), folder, environment(A="b"), launching.RUNNER))
        assert isinstance(found[0], forking.ForkedProcess) == (how == "forked")
        started.append(found[0])
        return found

    yield launched
    for process in started:
        process.kill()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
    zygote.close()
    server.wait(60)


def _asked(connection: Connection, what: str) -> bytes:
    connection.send_bytes(what.encode())
    return connection.recv_bytes()


def _facts(launch: Launch, how: str, choice: str) -> dict[str, Any]:
    process, connection = launch(how, choice)
    found: dict[str, Any] = json.loads(_asked(connection, "facts"))
    for name, link in found["namespaces"].items():
        found["namespaces"][name] = link == os.readlink(f"/proc/self/ns/{name}")
    process.kill()
    process.wait(60)
    return found


@pytest.mark.skipif(bool(sandbox.why_none()), reason="bubblewrap is not installed or not permitted here")
def test_a_forked_process_has_no_more_than_one_that_bubblewrap_started(launch: Launch) -> None:
    new, forked = (_facts(launch, how, "auto") for how in ("new", "forked"))
    # bubblewrap keeps this bound for root. It means nothing where no new privileges are given.
    bounds = [int(found["status"].pop("CapBnd")[0], 16) for found in (new, forked)]
    assert bounds[1] == 0 <= bounds[0]
    assert forked == new
    assert forked["namespaces"]["pid"] is forked["namespaces"]["mnt"] is forked["namespaces"]["net"] is False
    assert set(forked["status"]["CapEff"]) == {"0" * 16}
    assert forked["status"]["NoNewPrivs"] == ["1"]
    assert not forked["seen"], "a process outside the sandbox"
    assert not forked["secret"], "what is kept from candidates"
    assert Path(forked["folder"]).name == "scratch"


def test_without_a_sandbox_it_is_like_a_new_one_too(launch: Launch) -> None:
    new, forked = (_facts(launch, how, "off") for how in ("new", "forked"))
    for found in (new, forked):
        found["others"] = None  # other processes of this machine
    assert forked == new
    assert forked["secret"], "nothing hides it"


@pytest.mark.parametrize("choice", ["auto", "off"])
@pytest.mark.parametrize(("how_it_ends", "code"), [("exit", 3), ("crash", -signal.SIGABRT), ("", -signal.SIGKILL)])
def test_its_end_is_told(launch: Launch, choice: str, how_it_ends: str, code: int) -> None:
    process, connection = launch("forked", choice)
    assert process.poll() is None
    _asked(connection, "say")
    if how_it_ends:
        connection.send_bytes(how_it_ends.encode())
    else:
        process.kill()
    assert process.wait(60) == (128 - code if code < 0 and sandbox.is_used(choice) else code)
    assert process.poll() == process.wait()
    assert process.stdout is not None
    assert process.stdout.read() == b"said\n"


@pytest.mark.parametrize("choice", ["auto", "off"])
def test_it_ends_with_the_process_that_asked_for_it(launch: Launch, choice: str) -> None:
    """The asker here is a fork of this process, which dies without a word."""
    reading, writing = os.pipe()
    asker = os.fork()
    if asker == 0:
        process, connection = launch("forked", choice)
        _asked(connection, "facts")
        connection.send_bytes(b"sleep")
        os.write(writing, str(process.pid).encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(writing)
    pid = int(os.read(reading, 100))
    os.close(reading)
    os.waitpid(asker, 0)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not psutil.pid_exists(pid)


def test_a_process_is_started_where_none_can_be_forked(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, theirs = forking.pair()
    theirs.close()
    monkeypatch.setattr(launching, "zygotes", {launching.RUNNER: gone})
    program = launching.Program((sys.executable, "-c", "print('new')"), ROOT, environment(), launching.RUNNER)
    process, connection = launching.launch(program)
    assert process.stdout is not None
    assert process.stdout.read() == b"new\n"
    assert process.wait(60) == 0
    process.stdout.close()
    connection.close()
    assert launching.zygotes == {}


def test_a_process_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork has none of them, and may wait for a lock that one of them held."""
    monkeypatch.setattr(launching, "zygotes", {})
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    suite_process.keep()
    done.set()
    thread.join()
    assert launching.zygotes == {}


def test_the_process_that_forks_is_ended_by_the_one_that_started_it(tmp_path: Path) -> None:
    """Nothing is left to the interpreter's end, which would warn of an open socket and of a process that still runs."""
    folder = f"Path({str(tmp_path)!r})"
    code = f"from pathlib import Path; from harness.running import launching; launching.keep_runner({folder})"
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", code],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert not [p.pid for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or [])]
