"""Start the process of a candidate, or have it already. This module imports no torch.

To import torch takes longer than most questions. So a command starts the candidate's process before it imports torch
itself: both imports take place at once, on two cores. Whoever needs a process with this command, folder and environment
gets the one that was started; a process that is not needed after all ends with this one.

A process that stays (`harness.running.forking`) has imported torch for all candidates that are judged by its children:
the process of a candidate is forked from there.
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
from harness.running import forking, sandbox
from harness.running.forking import CannotFork, ForkedProcess, Zygote

#: The files beside the runner, by the name of each copy.
_PROGRAM = (
    ("runner.py", "main.py"),
    ("lifeline.py", "lifeline.py"),
    ("timing.py", "timing.py"),
    ("cuda_errors.py", "cuda_errors.py"),
    ("watching.py", "watching.py"),
    ("zygote.py", "zygote.py"),
)
#: What a process can be forked from instead of being started: one that has imported torch alone, or the suite too.
RUNNER, SUITE = "runner", "suite"


@dataclass(frozen=True)
class Program:
    """A command line, which gets the number of a descriptor as one more argument; its folder, and its variables.

    `of` says which process it may be forked from, if it may: RUNNER or SUITE. Its command is that of a sandbox, or
    none, and then Python.
    """

    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    of: str = ""


Process = subprocess.Popen[bytes] | ForkedProcess
#: Processes that were started early, each with its program and the connection to it.
_early: list[tuple[Program, Process, Connection]] = []
#: The processes that fork for this one, by RUNNER and SUITE.
zygotes: dict[str, Zygote] = {}


def of_candidate(source: str, choice: str, device: str = CPU) -> Program:
    """The program of a candidate's process; `source` is its text, `choice` a value of `--sandbox`."""
    folder = sandbox.scratch(source)
    command = sandbox.command(runner(folder), folder, choice)
    return Program(tuple(command), folder, sandbox.environment(folder, device), RUNNER)


def runner(folder: Path) -> list[str]:
    """The command that starts a copy of the runner, which is put beside that scratch folder."""
    return _copied(sandbox.program(folder))


def _copied(place: Path) -> list[str]:
    for name, copy in _PROGRAM:
        shutil.copyfile(Path(executing.__path__[0]) / name, place / copy)
    return [sys.executable, "-P", str(place / "main.py")]


def keep_runner(folder: Path) -> None:
    """Start the process from which runners are forked from now on. Its files are put into the folder.

    Elsewhere than on Linux none is forked: each is a new process.
    """
    if not forking.AVAILABLE:
        return
    zygote, theirs = forking.pair()
    with theirs:
        process = subprocess.Popen(
            [*_copied(folder), "fork", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env=sandbox.plain_environment(),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,  # Ctrl-C is for the one that asks
        )
    zygotes[RUNNER] = zygote
    atexit.register(close_in, os.getpid(), zygote, process)


def in_a_fork() -> set[int]:
    """In a fork of this process: the descriptors by which it can ask for processes. Those started early are not its."""
    _early.clear()
    return {zygote.fileno() for zygote in zygotes.values()}


def take_over(descriptors: Mapping[str, int]) -> None:
    """Ask for processes by these descriptors, by RUNNER and SUITE. Those of the process that forked are closed here."""
    for zygote in zygotes.values():
        zygote.forget()
    zygotes.clear()
    zygotes.update({name: Zygote(socket.socket(fileno=number)) for name, number in descriptors.items()})


def close_in(owner: int, zygote: Zygote, process: subprocess.Popen[bytes] | None = None) -> None:
    """Close it at the end of the process that has it open. A fork has closed its copy already.

    `process` is the one that forks, if the owner has started it, and ends with it. A fork of the owner that lives on
    starts new processes instead.
    """
    if os.getpid() == owner:
        zygote.close()
        if process is not None:
            process.kill()
            process.wait()


def begin(program: Program) -> None:
    """Start a process now that `launch` shall return later."""
    _early.append((program, *_started(program, ())))


def begin_candidate(source: str, choice: str, device: str = CPU) -> None:
    """Start the process of a candidate now, or the one that it is forked from: a run may need several of it.

    `source` is the candidate's text, `choice` a value of `--sandbox`.
    """
    if forking.AVAILABLE and RUNNER not in zygotes:
        keep_runner(sandbox.program(sandbox.scratch(source)))
    else:
        begin(of_candidate(source, choice, device))


def launch(program: Program, descriptors: Sequence[int] = ()) -> tuple[Process, Connection]:
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


def _started(program: Program, descriptors: Sequence[int]) -> tuple[Process, Connection]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = _forked(program, theirs.fileno(), descriptors) or subprocess.Popen(
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


def _forked(program: Program, connection: int, descriptors: Sequence[int]) -> ForkedProcess | None:
    """The process from the one that forks; None if there is none that can, and a new one is to be started."""
    zygote = zygotes.get(program.of)
    if zygote is None:
        return None
    outer = program.command[: program.command.index(sys.executable)]
    with suppress(CannotFork):
        return zygote.fork(outer, program.folder, program.environment, connection, descriptors)
    zygotes.pop(program.of).close()
    return None
