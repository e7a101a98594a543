"""Run a function in a fresh process that has imported torch and this project, but no implementation.

To import torch takes longer than most questions. So one server process imports it once, and forks for each question. It
never computes and never touches CUDA: after either, a fork is not like a new process. A question may want further
modules of torch imported, which takes a second: the server forks another one, that imports them once.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

from harness import discovery
from harness.errors import HarnessError
from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.executing.module_path import ROOT, with_this_tree
from harness.judging import exit_status

#: The environment before any candidate was imported: a fresh process inherits nothing that a candidate has set.
_environment: dict[str, str] = {}
#: Seconds between two checks whether a question is answered.
_LOOK = 0.005
#: Of what a process prints before its answer, so many characters of the end are read; an error quotes one line.
_SAID = 20000


class NoAnswer(HarnessError):
    """The process ended without an answer; the message says how."""


class TooLate(HarnessError):
    """The process was still running at the time limit, and was ended."""


def remember_environment() -> None:
    """Have fresh processes the variables that this process has now.

    pytest's are left out, so that code in the process cannot see that it runs under a test.
    """
    _environment.clear()
    _environment.update({name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")})


remember_environment()


class _Server:
    """The process that forks, and the pipes to it. `wait` waits for its end, and returns its exit code.

    Forks of the process that has it may ask it too, one at a time. One that is ended meanwhile may leave its reply in
    the pipe, or a part of it: a reply repeats the `id` of its request.
    """

    def __init__(self, stdin: IO[str], stdout: IO[str], wait: Callable[[], int]) -> None:
        self._stdin, self._stdout, self._wait = stdin, stdout, wait
        #: A file without a name. A lock of POSIX on it belongs to one process, and ends with it.
        self._turn, name = tempfile.mkstemp()
        os.unlink(name)

    def ask(self, **request: Any) -> dict[str, Any]:
        """The reply. Raises NoAnswer if the server itself has ended."""
        number = secrets.token_hex(8)
        fcntl.lockf(self._turn, fcntl.LOCK_EX)
        try:
            reply = self._reply(number, json.dumps({**request, "id": number}))
        finally:
            fcntl.lockf(self._turn, fcntl.LOCK_UN)
        if reply is not None:
            return reply
        raise NoAnswer(f"the process that forks {exit_status.in_words(self.stop())}")

    def _reply(self, number: str, request: str) -> dict[str, Any] | None:
        with contextlib.suppress(OSError):
            self._stdin.write(f"{request}\n")
            self._stdin.flush()
            while line := self._stdout.readline():
                with contextlib.suppress(ValueError):
                    reply: Any = json.loads(line)
                    if isinstance(reply, dict) and reply.get("id") == number:
                        return reply
        return None

    def stop(self) -> int:
        """End the server: it ends when its input is closed. Returns its exit code."""
        os.close(self._turn)
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()
        return self._wait()


def _started() -> _Server:
    """A server that is a new process."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from harness.judging.fresh_process import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**_environment, "PYTHONPATH": with_this_tree(_environment)},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    return _Server(process.stdin, process.stdout, process.wait)


def begin() -> None:
    """Make this process the model of fresh ones: fork the server from it now.

    It has imported the suite and no implementation, it has computed nothing and has no other threads.
    """
    _servers.append(_fork_of_this())


def _fork_of_this(imports: Sequence[str] = ()) -> _Server:
    """A server that is a fork of this process, and imports these modules."""
    questions, asking = os.pipe()
    answering, answers = os.pipe()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            end_with_parent(parent)
            os.chdir(ROOT)
            # As in a new process, so that a child, which gives both numbers to others, cannot write among the replies.
            os.dup2(questions, 0)
            os.dup2(answers, 1)
            close_all_but(set())
            with os.fdopen(0) as sys.stdin, os.fdopen(1, "w") as sys.stdout:
                for name in imports:
                    importlib.import_module(name)
                serve()
        finally:
            os._exit(0)
    os.close(questions)
    os.close(answers)
    return _Server(
        os.fdopen(asking, "w"),
        os.fdopen(answering),
        lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
    )


_servers: list[_Server] = []


@atexit.register
def stop() -> None:
    """End the server, if there is one; the next question starts another."""
    while _servers:
        _servers.pop().stop()


def asked(module: str, function: str, question: str, limit: float, imports: Sequence[str] = ()) -> str:
    """What `module.function(question)` returns in a fresh process, within `limit` seconds.

    The process has imported the modules `imports`, which must not compute. Raises TooLate, or NoAnswer with the last
    line that the process printed.
    """
    if not _servers:
        _servers.append(_started())
    try:
        reply = _servers[-1].ask(
            module=module, function=function, question=question, limit=limit, imports=list(imports)
        )
    except NoAnswer:
        _servers.clear()
        raise
    if reply["late"]:
        raise TooLate(f"a fresh process was still running after {limit:g} s")
    answer: str | None = reply["answer"]
    if answer is None:
        raise NoAnswer(_last_words(reply["said"]) or f"it {exit_status.in_words(reply['status'])}")
    return answer


def _last_words(said: str) -> str:
    """Of what a process printed before it ended: what C++ threw, or the last line that is no frame of its stack."""
    lines = [line.strip() for line in said.splitlines()]
    lines = [line for line in lines if line and not line.startswith("frame #")]
    thrown = [line for line in lines if line.startswith("what():")]
    return (thrown or lines or [""])[-1].removeprefix("what():").strip()


# The server's side


def serve() -> None:
    """The main loop of the server: it reads a line of JSON for each question, and writes one for each reply."""
    discovery.operators()
    with_imports: dict[tuple[str, ...], _Server] = {}
    for line in sys.stdin:
        request = json.loads(line)
        number, imports = request.pop("id"), tuple(request.pop("imports"))
        if imports and imports not in with_imports:
            with_imports[imports] = _fork_of_this(imports)
        try:
            reply = with_imports[imports].ask(**request, imports=[]) if imports else _forked(request)
        except NoAnswer as error:
            with_imports.pop(imports)
            reply = {"late": False, "status": 1, "answer": None, "said": str(error)}
        print(json.dumps({**reply, "id": number}), flush=True)


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
        close_all_but({answer.fileno()})  # pipes to a server with imports, among others
        function = getattr(importlib.import_module(request["module"]), request["function"])
        answer.write(function(request["question"]))
        answer.flush()
    except BaseException as error:
        # One line: those after it, such as the stack of C++ or advice on CUDA, do not say what is wrong.
        print(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}", file=sys.stderr, flush=True)
        os._exit(1)
    # Skip what torch's threads do at exit: it is not tested here, and others may use the CUDA context.
    os._exit(0)
