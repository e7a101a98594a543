"""Run a function in a fresh process that has imported torch and this project, but no implementation.

To import torch takes longer than most questions. So one server process imports it once, and forks for each question. It
never computes and never touches CUDA: after either, a fork is not like a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from harness import discovery
from harness.errors import HarnessError
from harness.judging import exit_status

_ROOT = Path(__file__).parents[2]
#: The environment before any candidate was imported: a fresh process inherits nothing that a candidate has set.
#: pytest's variable is left out, so that code in the process cannot see that it runs under a test.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
#: Seconds between two checks whether a question is answered.
_LOOK = 0.005
#: What a process may print before its answer; an error quotes its last lines.
_SAID = 2000


class NoAnswer(HarnessError):
    """The process ended without an answer; the message says how."""


class TooLate(HarnessError):
    """The process was still running at the time limit, and was ended."""


class _Server:
    """The process that forks, and the pipes to it."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(_ROOT), *filter(None, [_ENVIRONMENT.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from harness.judging.fresh_process import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=_ROOT,
            env={**_ENVIRONMENT, "PYTHONPATH": path},
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """The reply. Raises NoAnswer if the server itself has ended."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        line = ""
        with contextlib.suppress(OSError):
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            line = stdout.readline()
        if not line:
            self.stop()
            raise NoAnswer(f"the process that forks {exit_status.in_words(self._process.returncode)}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def stop(self) -> None:
        """End the server: it ends when its input is closed."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


_servers: list[_Server] = []


@atexit.register
def stop() -> None:
    """End the server, if there is one; the next question starts another."""
    while _servers:
        _servers.pop().stop()


def asked(module: str, function: str, question: str, limit: float) -> str:
    """What `module.function(question)` returns in a fresh process, within `limit` seconds.

    Raises TooLate, or NoAnswer with the last line that the process printed.
    """
    if not _servers:
        _servers.append(_Server())
    try:
        reply = _servers[-1].ask(module=module, function=function, question=question, limit=limit)
    except NoAnswer:
        _servers.clear()
        raise
    if reply["late"]:
        raise TooLate(f"a fresh process was still running after {limit:g} s")
    answer: str | None = reply["answer"]
    if answer is None:
        raise NoAnswer((reply["said"].strip().splitlines() or [f"it {exit_status.in_words(reply['status'])}"])[-1])
    return answer


# The server's side


def serve() -> None:
    """The main loop of the server: it reads a line of JSON for each question, and writes one for each reply."""
    discovery.operators()
    for line in sys.stdin:
        print(json.dumps(_forked(json.loads(line))), flush=True)


def _forked(request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile("w+") as answer, tempfile.TemporaryFile("w+", errors="replace") as said:
        child = os.fork()
        if child == 0:
            _answer(request, answer, said)
        status = _ended(child, request["limit"])
        answer.seek(0)
        said.seek(0)
        return {
            "late": status is None,
            "status": status,
            "answer": answer.read() or None if status == 0 else None,
            "said": said.read()[-_SAID:],
        }


def _ended(child: int, limit: float) -> int | None:
    """The exit status of the child; None if it had to be ended."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_LOOK)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _answer(request: dict[str, Any], answer: IO[str], said: IO[str]) -> None:
    """Runs in the child. Its output does not reach the pipes of the server, and it always ends here."""
    try:
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        function = getattr(importlib.import_module(request["module"]), request["function"])
        answer.write(function(request["question"]))
        answer.flush()
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)
    # Skip what torch's threads do at exit: it is not tested here, and others may use the CUDA context.
    os._exit(0)
