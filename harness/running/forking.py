"""Processes that are forked from one that has imported torch already: see `harness.executing.zygote`.

A command that stays, such as a worker of a fleet, starts such a process once; what it forks later finds it here.

CUDA cannot be used in a fork of a process that has initialised its driver, and autograd does so at the first backward.
A process that forks leaves it alone: `ask_nvml` has torch find GPUs without it, and `may_fork` asks the driver itself.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

from harness.executing import zygote

#: Whether this system has what a fork into a sandbox needs.
AVAILABLE = hasattr(os, "pidfd_open")
#: The library of CUDA's driver, and what its functions return before it is initialised: CUDA_ERROR_NOT_INITIALIZED.
_DRIVER, _NOT_INITIALISED = "libcuda.so.1", 3
#: Seconds for a sandbox to be there.
_START = 30.0
#: What runs in a sandbox until it is ended: it says that everything is in place, and waits.
_WAITING = ("sh", "-c", "echo && exec cat")


def ask_nvml() -> None:
    """Have `torch.cuda.is_available` ask NVML, from now on and in all processes that this one starts.

    By default it initialises the driver. Where NVML is missing it still does.
    """
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")


def may_fork() -> bool:
    """Whether a fork of this process can be used for everything, CUDA included."""
    return AVAILABLE and not _is_initialised(_DRIVER)


def _is_initialised(driver: str) -> bool:
    """Whether this process has loaded that library and initialised it."""
    try:
        library = ctypes.CDLL(driver, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        return False
    return int(library.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))) != _NOT_INITIALISED


class CannotFork(OSError):
    """The process could not be forked. A new one can be started."""


class ForkedProcess:
    """A forked process, with the part of `subprocess.Popen` that its supervision needs."""

    def __init__(self, told: socket.socket, stdout: IO[bytes], sandbox: subprocess.Popen[bytes] | None) -> None:
        """Raises CannotFork. `told` is what the one that forked tells; `sandbox` holds the sandbox."""
        self.stdout: IO[bytes] | None = stdout
        self._told, self._sandbox = told, sandbox
        self._read = b""
        self._returncode: int | None = None
        line = self._line(_START)
        if not line.isdigit():
            raise CannotFork(f"the process that forks said {line!r}")
        self.pid = int(line)

    def poll(self) -> int | None:
        """Its exit code; None while it runs. In a sandbox, 128 and the number of a signal, as bubblewrap reports."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        if self._returncode is None:
            try:
                code = int(self._line(timeout) or -signal.SIGKILL)
            except TimeoutError:
                raise subprocess.TimeoutExpired("a forked process", timeout or 0.0) from None
            self._returncode = 128 - code if code < 0 and self._sandbox is not None else code
            self._end_sandbox()
            self._told.close()
        return self._returncode

    def kill(self) -> None:
        """End it, and all that is in its sandbox."""
        if self._returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self._end_sandbox()

    def _end_sandbox(self) -> None:
        if self._sandbox is not None:
            end_sandbox(self._sandbox)

    def _line(self, timeout: float | None) -> str:
        """The next line that is told; empty at the end. Raises TimeoutError."""
        while b"\n" not in self._read:
            if not select.select([self._told], [], [], timeout)[0]:
                raise TimeoutError
            block = self._told.recv(4096)
            if not block:
                return ""
            self._read += block
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


class Zygote:
    """The process that forks, as those who ask it see it."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests

    def fileno(self) -> int:
        """The descriptor that has to stay open in a fork of this process which asks."""
        return self._requests.fileno()

    def close(self) -> None:
        """Ask for nothing more: the process ends when nobody can."""
        self._requests.close()

    def forget(self) -> None:
        """In a fork that has closed the descriptor: its number may be that of something else by now."""
        self._requests.detach()

    def fork(
        self,
        sandbox: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        connection: int,
        descriptors: Sequence[int],
    ) -> ForkedProcess:
        """A new process. `sandbox` is the command line of bubblewrap without a program, or empty.

        `descriptors` are open in it too, by the same numbers. Raises CannotFork.
        """
        held = _held(sandbox) if sandbox else None
        told, tells = socket.socketpair()
        reading, writing = os.pipe()
        asked = {
            "sandbox": None if held is None else held[1],
            "folder": str(folder),
            "environment": dict(environment),
            "numbers": list(descriptors),
        }
        try:
            try:
                sent = [connection, writing, tells.fileno(), *descriptors]
                socket.send_fds(self._requests, [json.dumps(asked).encode()], sent)
            finally:
                os.close(writing)
                tells.close()
            return ForkedProcess(told, os.fdopen(reading, "rb"), None if held is None else held[0])
        except OSError as error:
            told.close()
            if held is not None:
                end_sandbox(held[0])
            raise error if isinstance(error, CannotFork) else CannotFork(str(error)) from error


def _held(sandbox: Sequence[str]) -> tuple[subprocess.Popen[bytes], int]:
    """(a sandbox, and a process in it, whose namespaces are complete). Raises CannotFork."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as facts:
        process = subprocess.Popen(
            [*sandbox, "--info-fd", str(writing), *_WAITING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        assert process.stdout is not None
        if not select.select([process.stdout], [], [], _START)[0] or not process.stdout.readline():
            end_sandbox(process)
            raise CannotFork("bubblewrap made no sandbox")
        return process, int(json.load(facts)["child-pid"])


def end_sandbox(process: subprocess.Popen[bytes]) -> None:
    """End what holds a sandbox, and with it all that is in there."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def pair() -> tuple[Zygote, socket.socket]:
    """One who asks, and the end of the connection that the process which forks reads."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, zygote.LARGEST)
    return Zygote(ours), theirs


def take_over_streams() -> None:
    """Have Python's standard streams be those of this process: who forked it may have replaced them."""
    sys.stdin, sys.stdout, sys.stderr = (open(n, mode, closefd=False) for n, mode in ((0, "r"), (1, "w"), (2, "w")))  # noqa: SIM115


def leave_quietly(main: Callable[[], None]) -> NoReturn:
    """In a fork that only computes: call `main` and end. It says nothing and removes nothing."""
    with suppress(BaseException):
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        main()
    os._exit(0)


def leave_after(main: Callable[[], int]) -> NoReturn:
    """In a fork: call `main` and end as a program ends, but without the frames of the process that forked.

    Those would remove what is still in use there.
    """
    code = 1
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        leave(code)


def leave(code: int) -> NoReturn:
    """End as a program ends, but leave the memory to the system: to take torch apart takes a third of a second."""
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
