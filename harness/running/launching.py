"""Start the process of a candidate, or have it already. This module imports no torch.

To import torch takes longer than most questions. So a command starts the candidate's process before it imports torch
itself: both imports take place at once, on two cores. Whoever needs a process with this command, folder and environment
gets the one that was started; a process that is not needed after all ends with this one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from backends.devices import CPU
from harness import executing
from harness.running import sandbox

_PROGRAM = (("runner.py", "main.py"), ("timing.py", "timing.py"), ("watching.py", "watching.py"))


@dataclass(frozen=True)
class Program:
    """A command line, which gets the number of a descriptor as one more argument; its folder, and its variables."""

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]


#: Processes that were started early, each with its program and the connection to it.
_early: list[tuple[Program, subprocess.Popen[bytes], Connection]] = []


def of_candidate(source: str, choice: str, device: str = CPU) -> Program:
    """The program of a candidate's process; `source` is its text, `choice` a value of `--sandbox`."""
    folder = sandbox.scratch(source)
    command = sandbox.command(runner(folder), folder, choice)
    return Program(tuple(command), folder, sandbox.environment(folder, device))


def runner(folder: Path) -> list[str]:
    """The command that starts a copy of the runner, which is put beside that scratch folder."""
    program = sandbox.program(folder)
    for name, copy in _PROGRAM:
        shutil.copyfile(Path(executing.__path__[0]) / name, program / copy)
    return [sys.executable, "-P", str(program / "main.py")]


def begin(program: Program) -> None:
    """Start a process now that `launch` shall return later."""
    _early.append((program, *_started(program, ())))


def launch(program: Program, descriptors: Sequence[int] = ()) -> tuple[subprocess.Popen[bytes], Connection]:
    """A process of that program and the connection to it: one that was started early, or a new one.

    `descriptors` are open in the process too, by the same numbers; such a process is always new.
    """
    for early in _early:
        if early[0] == program and not descriptors and early[1].poll() is None:
            _early.remove(early)
            return early[1:]
    end()
    return _started(program, descriptors)


@atexit.register
def end() -> None:
    """End the processes that nobody wanted."""
    while _early:
        _, process, connection = _early.pop()
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        connection.close()
        if process.stdout is not None:
            process.stdout.close()


def _started(program: Program, descriptors: Sequence[int]) -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [*program.command, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=program.folder,
            env=dict(program.environment),
            pass_fds=(theirs.fileno(), *descriptors),
            start_new_session=True,
        )
    return process, Connection(ours.detach())
