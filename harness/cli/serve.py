"""`python -m harness serve`: a server that has imported torch and the suite, so that `judge` starts at once.

`judge` finds it by itself. It forks for each run; candidates are in sandboxes of their own as always. It ends by
`--stop`, after a while without a run, and when a file of the suite or an installed package changes.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from harness.building.cache import state_root
from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.errors import Broken, Unavailable, UsageError
from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.running import forking, launching, serving

#: Seconds between two looks whether the server should end.
_LOOK = 20.0
#: The server's program. Its variables are those of the command that starts it.
_PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from harness.cli.main import main
sys.exit(main())
"""


def main(arguments: Sequence[str]) -> int:
    """Start the server in the background, or stop it.

    Raises Broken if it does not start; Unavailable without Linux.
    """
    parser = parsing.parser("serve", COMMANDS["serve"])
    parser.add_argument("--stop", action="store_true", help="end every server of this user")
    parser.add_argument("--idle", type=float, default=30.0, metavar="MINUTES", help="end after so long without a run")
    parser.add_argument("--here", type=int, metavar="DESCRIPTOR", help="be the server, and say there when it is ready")
    given = parser.parse_args(arguments)
    if not given.idle > 0:
        raise UsageError(f"--idle was {given.idle}, but should be a number of minutes above 0")
    if not forking.AVAILABLE:
        raise Unavailable("serve forks processes into sandboxes, which needs Linux")
    if given.here is not None:
        return _serve(given.here, 60 * given.idle)
    if given.stop:
        return _stop()
    found = serving.connected()
    if found is not None:
        found.close()
        print("the server runs already", file=sys.stderr)
        return 0
    return _start(given.idle)


def _start(idle: float) -> int:
    reading, writing = os.pipe()
    with os.fdopen(reading) as ready, tempfile.TemporaryFile() as said:
        command = [sys.executable, "-P", "-c", _PROGRAM, "serve", f"--idle={idle}", f"--here={writing}"]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd="/",
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        if ready.read() != "ready":
            process.kill()
            process.wait()
            said.seek(0)
            lines = said.read().decode(errors="replace").strip().splitlines()
            raise Broken(f"the server does not start; it said last: {lines[-1] if lines else 'nothing'}")
    process.returncode = 0  # it is no child to wait for
    print(f"the server runs: process {process.pid}; it ends by `serve --stop`, or after {idle:g} minutes without a run")
    return 0


def _stop() -> int:
    count = 0
    for path in state_root().glob("judge-*.socket"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection, suppress(OSError):
            connection.connect(str(path))
            connection.send(b'{"stop": true}')
            connection.recv(100)  # until it has ended
            count += 1
        path.unlink(missing_ok=True)
    print(f"{count} server{'' if count == 1 else 's'} stopped")
    return 0


@dataclass
class JudgeRun:
    """A judge, and the connection to the command that asked for it."""

    connection: socket.socket
    pid: int


def _serve(descriptor: int, idle: float) -> int:
    """Be the server."""
    variables = dict(os.environ)
    path = serving.place(variables)
    folder = Path(tempfile.mkdtemp(prefix="lltm-conformance-"))  # no TemporaryDirectory: each fork would remove it
    try:
        launching.keep_runner(folder)
        from harness.pytest_plugin import warming
        from harness.running import suite_process

        warming.warm_up()
        suite_process.keep()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(str(path))
            path.chmod(0o600)
            listening.listen(64)
            with os.fdopen(descriptor, "w") as ready:
                ready.write("ready")
            signal.signal(signal.SIGTERM, _end)
            return JudgeServer(listening, lambda: serving.place(variables) == path, idle).run()
    finally:
        path.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(0)


class JudgeServer:
    """Answers connections one after the other; judges run beside each other."""

    def __init__(self, listening: socket.socket, is_current: Callable[[], bool], idle: float) -> None:
        """`is_current` says whether what was imported is still what is there; `idle` is in seconds."""
        self._listening, self._is_current, self._idle = listening, is_current, idle
        self._selector = selectors.DefaultSelector()
        self._selector.register(listening, selectors.EVENT_READ, self._accept)
        self._runs: dict[int, JudgeRun] = {}
        self._used = time.monotonic()
        self._ending = False

    def run(self) -> int:
        """Serve until there is a reason to end. What still runs then is ended as by Ctrl-C."""
        try:
            while not self._ending:
                for key, _ in self._selector.select(_LOOK):
                    key.data(key.fileobj)
                if self._runs:
                    self._used = time.monotonic()
                elif time.monotonic() > self._used + self._idle or not self._is_current():
                    break
        finally:
            for run in self._runs.values():
                with suppress(ProcessLookupError):
                    os.kill(run.pid, signal.SIGTERM)
            for run in self._runs.values():
                os.waitpid(run.pid, 0)
        return 0

    def _accept(self, _: Any) -> None:
        connection, _address = self._listening.accept()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, serving.LARGEST)
        if _is_outside_any_sandbox(connection):
            self._selector.register(connection, selectors.EVENT_READ, self._asked)
        else:
            connection.close()

    def _asked(self, connection: socket.socket) -> None:
        """A request, a signal for its judge, or the end of the command."""
        try:
            text, descriptors, _, _ = socket.recv_fds(connection, serving.LARGEST, 3)
        except OSError:
            text, descriptors = b"", []
        run = next((run for run in self._runs.values() if run.connection is connection), None)
        asked = json.loads(text) if text else {}
        if "stop" in asked:
            self._ending = True  # the connection closes with this process
        elif "arguments" in asked and run is None:
            self._begin(connection, asked, descriptors)
        elif run is not None:
            with suppress(ProcessLookupError):
                os.kill(run.pid, int(asked.get("signal", signal.SIGTERM)))
        if not text:
            self._selector.unregister(connection)
            connection.close()
        for descriptor in descriptors:
            os.close(descriptor)

    def _begin(self, connection: socket.socket, asked: dict[str, Any], descriptors: Sequence[int]) -> None:
        server, child = os.getpid(), os.fork()
        if child == 0:
            _be_the_judge(asked, descriptors, server)
        ended = os.pidfd_open(child)
        self._runs[ended] = JudgeRun(connection, child)
        self._selector.register(ended, selectors.EVENT_READ, self._ended)

    def _ended(self, ended: int) -> None:
        run = self._runs.pop(ended)
        self._selector.unregister(ended)
        os.close(ended)
        code = os.waitstatus_to_exitcode(os.waitpid(run.pid, 0)[1])
        with suppress(OSError):
            run.connection.send(json.dumps({"code": 128 - code if code < 0 else code}).encode())


def _is_outside_any_sandbox(connection: socket.socket) -> bool:
    """Whether who asks is no candidate: a process in the namespaces of this one. A sandbox hides the socket, too."""
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    names = ("pid", "mnt", "user")
    with suppress(OSError):
        return all(os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}") for name in names)
    return False


def _be_the_judge(asked: dict[str, Any], descriptors: Sequence[int], server: int) -> NoReturn:
    """In the child: judge as the command would have done itself."""

    def judged() -> int:
        from harness.cli.judge import judge
        from harness.judging import fresh_process

        os.setsid()
        end_with_parent(server)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        close_all_but(launching.in_a_fork())
        forking.take_over_streams()
        for number in serving.ENDINGS:  # what this server ignores says nothing about the command
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        tempfile.tempdir = None
        sys.path.insert(0, asked["path"])
        fresh_process.remember_environment()
        return judge(asked["arguments"])

    forking.leave_after(judged)
