"""Ask a question in a process of its own that has imported torch and this project, and no implementation.

To import torch takes longer than most questions. So one process does it, once, and forks for each question; it never
computes and never asks CUDA, after either of which a fork is not what a new process is.
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
#: As it was before any candidate was imported: a fresh process inherits nothing that a candidate has set. It is no test
#: that runs there: nothing should be able to tell that it is watched.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
#: Seconds between two looks at whether a question is answered.
_LOOK = 0.005
#: What a process may say on its way to an answer: its last lines are told.
_SAID = 2000


class NoAnswer(HarnessError):
    """The process ended without an answer; the message says how."""


class TooLate(HarnessError):
    """The process was still running at the limit, and was ended."""


class _Server:
    """The process that forks, and the way to it."""

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
        """The reply. Raises NoAnswer where the server itself has ended."""
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
        """End it: it ends by itself when nobody can ask any more."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


_servers: list[_Server] = []


@atexit.register
def stop() -> None:
    """End the process that forks, if there is one; the next question starts another."""
    while _servers:
        _servers.pop().stop()


def asked(module: str, function: str, question: str, limit: float) -> str:
    """What `module.function(question)` returns in a fresh process, within `limit` seconds.

    Raises TooLate, or NoAnswer with the last line that the process said.
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


# The other side


def serve() -> None:
    """The life of the process that forks: a line of JSON for each question, and one for each reply."""
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
    """The exit status of the child, None where it had to be ended."""
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
    """In the child: nothing that it says reaches the parent's own pipes; it ends here, whatever happens."""
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
    # What torch's threads do at exit, beside a CUDA context that others use too, is not asked.
    os._exit(0)
