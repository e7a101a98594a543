"""A worker: a process that judges one candidate after the other, each in a child of its own.

It reads requests from standard input and answers on standard output, one line of JSON each. A child that ends by a
signal, or by anything but a report, costs its own answer alone. A warm worker has imported the suite, and a child is a
fork of it; a cold one starts `python -m harness judge` anew each time. If the worker dies, its children die with it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from resource import struct_rusage
from typing import Any, NoReturn, TextIO

from harness.errors import UsageError
from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.fleet.outcome import Ending, outcome
from harness.fleet.request import Request
from harness.pytest_plugin import invocation, warming
from harness.running import launching

#: Seconds in which a judge that is ended may write what it has.
_GRACE = 10.0
_PAUSE = 0.01
#: Characters of what a judge printed that are kept.
_SAID = 4_000
#: What a child returns if it could not judge. pytest has no such exit code.
_CANNOT = 70


def main() -> int:
    """Answer requests until there are no more."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True, help="folder for files of the candidate that is judged")
    parser.add_argument("--command", default="", help="JSON list: judge by this command, and not by a fork")
    parser.add_argument("--parent", type=int, required=True, help="the process with which this one ends")
    given = parser.parse_args()
    end_with_parent(given.parent)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    command: list[str] = json.loads(given.command) if given.command else []
    if not command:
        launching.keep_runner(Path(tempfile.mkdtemp(dir=given.root, prefix="runner-")))  # imports torch meanwhile
        warming.warm_up()
        from harness.running import suite_process  # imports torch

        suite_process.keep()
    _answer(answers, {"ready": os.getpid()})
    for line in sys.stdin:
        request = Request(**json.loads(line))
        with tempfile.TemporaryDirectory(dir=given.root, prefix="judged-", ignore_cleanup_errors=True) as folder:
            ending = _judged(request, Path(folder), command)
            if request.source and not command:
                _forget(ending.report)
        _answer(answers, asdict(outcome(ending)))
    return 0


def _forget(report: str) -> None:
    """Remove the scratch folder of a candidate whose file exists only while it is judged: nobody finds it again."""
    from harness.running import sandbox  # imports torch

    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OSError, UsageError):
        for entry in json.loads(report)["environment"]["candidates"].values():
            folder = sandbox.scratch(entry["source"])
            for place in (folder, sandbox.program(folder)):
                shutil.rmtree(place, ignore_errors=True)


def _answer(answers: TextIO, record: dict[str, Any]) -> None:
    answers.write(json.dumps(record) + "\n")
    answers.flush()


def _judged(request: Request, folder: Path, command: Sequence[str]) -> Ending:
    """Judge one candidate in a child process."""
    arguments = request.arguments(folder)
    said, report = folder / "output.txt", folder / "report.json"
    began = time.monotonic()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        _be_the_judge(parent, said, command, arguments)
    status, used, timed_out = _ended(child, request.limit)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # what the judge has left behind
    return Ending(
        exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
        signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
        timed_out=timed_out,
        seconds=round(time.monotonic() - began, 3),
        cpu_seconds=round(used.ru_utime + used.ru_stime, 3),
        report=_text(report),
        said=_text(said)[-_SAID:],
    )


def _ended(child: int, limit: float) -> tuple[int, struct_rusage, bool]:
    """(its status, what it used, whether it was ended because it took longer than `limit` seconds)."""
    began, sent = time.monotonic(), 0
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            return status, used, sent > 0
        passed = time.monotonic() - began
        if passed > limit and sent == 0:
            sent = signal.SIGTERM
            os.kill(child, signal.SIGTERM)
        elif passed > limit + _GRACE and sent == signal.SIGTERM:
            sent = signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        time.sleep(_PAUSE)


def _be_the_judge(parent: int, said: Path, command: Sequence[str], arguments: list[str]) -> NoReturn:
    """In the child: judge, and never return."""
    code = _CANNOT
    try:
        os.setsid()
        end_with_parent(parent)
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
        for descriptor, to in ((0, nothing), (1, output), (2, output)):
            os.dup2(to, descriptor)
        close_all_but(launching.in_a_fork())
        if command:
            os.execvp(command[0], [*command, *arguments])
        code = _pytest(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _pytest(arguments: list[str]) -> int:
    """What `python -m harness judge` does, without the start."""
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115
    return invocation.judged(arguments)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main())
