"""A process that answers requests, and its supervision: limits on time and memory, and an end for all it started.

The judge sends a header (JSON) and tensors (safetensors), and reads the same: nothing that comes back can carry code.
Each reply must repeat the `id` of its request; one that does not, or that cannot be read, ends the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from harness.judging import exit_status
from harness.judging.foreign_text import readable
from harness.judging.remote import RunnerFailure
from harness.running import launching
from harness.running.wire import TooLarge, Wire

#: Seconds between two looks at the memory of the process.
_LOOK = 0.2
#: Seconds that a process whose connection has closed gets to end by itself, so that its exit status is known.
_GRACE = 5.0
#: Lines of output that are kept, and characters of each.
_LINES, _WIDTH = 50, 500
#: Largest header of a reply, and largest reply, in bytes. What is read takes several times as much memory here.
_HEADER, _REPLY = 2**23, 2**30

Header = dict[str, Any]
Tensors = dict[str, Tensor]


class RunnerProcess:
    """A process that was started with one end of a socket, and the requests to it."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        memory: int,
        signal_offset: bool = False,
        descriptors: Sequence[int] = (),
        of: str = "",
    ) -> None:
        """`command` gets the number of its descriptor as a further argument; `folder` is its working folder.

        `memory` is what the process and its children may take above what they had at the first reply, in bytes.
        `signal_offset`: the exit status of a process that a signal ended is 128 and the signal, as bubblewrap reports.
        `descriptors` are open in the process too, by the same numbers. `of` says what it may be forked from, see
        `launching.Program`.
        """
        program = launching.Program(tuple(command), folder, environment, of)
        self._process, connection = launching.launch(program, descriptors)
        self._wire = Wire(connection, min(memory, _REPLY))
        self._memory, self._signal_offset = memory, signal_offset
        self._base: int | None = None
        self._known: dict[int, psutil.Process] = {}
        self._said: deque[str] = deque(maxlen=_LINES)
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)
        self._listener.start()

    def ask(self, header: Header, tensors: Tensors | None = None, *, seconds: float) -> tuple[Header, Tensors]:
        """The reply to a request, within `seconds`. Raises RunnerFailure; the process has ended then."""
        number = secrets.token_hex(8)
        deadline = time.monotonic() + seconds
        if not self._wire.is_silent():
            raise self._failed("sent a reply that nobody asked for")
        self._wire.send(json.dumps({**header, "id": number}).encode(), save(tensors or {}))
        head = self._next(deadline, seconds, _HEADER)
        body = self._next(deadline, seconds)
        try:
            answer, found = readable(json.loads(head)), load(body)
        except (ValueError, SafetensorError, RuntimeError, KeyError, RecursionError) as error:
            raise self._failed(f"sent something that is no reply ({type(error).__name__})") from None
        if not isinstance(answer, dict) or answer.get("id") != number:
            raise self._failed("sent a reply that does not belong to the question")
        if self._base is None:
            self._base = self._resident()
        return answer, found

    def cpu_seconds(self) -> float:
        """Processor time that the process and everything that it started have taken. Its steps are about 0.01 s."""
        total = 0.0
        self._resident()  # learns of children
        for process in self._known.values():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
        return total

    @property
    def said(self) -> str:
        """The last lines that the process printed."""
        return str(readable("\n".join(self._said)))

    def stop(self) -> None:
        """End the process and everything that it started."""
        self._resident()  # learns of children that a parent has left behind
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for process in self._known.values():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._process.kill()
        self._process.wait()
        self._listener.join(_GRACE)
        self._wire.close()

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None and not self._wire.closed

    def _listen(self, stream: IO[bytes]) -> None:
        """Keep the last lines of output; a line without an end is cut, so that memory stays small."""
        with stream:
            while line := stream.readline(2**16):
                self._said.append(line[:_WIDTH].decode("utf-8", "replace").rstrip())

    def _next(self, deadline: float, seconds: float, largest: int | None = None) -> bytes:
        while (left := deadline - time.monotonic()) > 0:
            try:
                got = self._wire.receive(min(_LOOK, left), largest)
            except TooLarge as error:
                raise self._failed(f"sent {error}") from None
            except (OSError, EOFError):
                raise self._ended() from None
            if got is not None:
                return got
            if self._base is not None and self._takes_more_than(self._base + self._memory):
                raise self._failed(f"took more than {self._memory / 2**30:.3g} GB of memory")
        raise self._failed(f"was still running after {seconds:.0f} s")

    def _ended(self) -> RunnerFailure:
        try:
            code = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            return self._failed("closed its connection to the judge")
        if self._signal_offset and code > 128:
            code = 128 - code
        return self._failed(exit_status.in_words(code))

    def _failed(self, how: str) -> RunnerFailure:
        self.stop()
        return RunnerFailure(how, self.said)

    def _takes_more_than(self, memory: int) -> bool:
        """Whether the process and all that it started have more memory; what several of them share counts once.

        torch.compile forks as many workers as there are cores: 32 of them have 8 GB that are the same.
        """
        return self._resident() > memory and self._of_all(lambda process: process.memory_full_info().pss) > memory

    def _resident(self) -> int:
        """Bytes of memory of the process and of everything that it started; what they share counts in each."""
        with contextlib.suppress(psutil.Error):
            top = psutil.Process(self._process.pid)
            self._known.update((child.pid, child) for child in (top, *top.children(recursive=True)))
        return self._of_all(lambda process: process.memory_info().rss)

    def _of_all(self, bytes_of: Callable[[psutil.Process], int]) -> int:
        """The sum over the processes; of one that this process may not look into, the resident bytes."""
        total = 0
        for process in list(self._known.values()):
            with contextlib.suppress(psutil.Error):
                try:
                    total += bytes_of(process)
                except psutil.AccessDenied:
                    total += process.memory_info().rss
        return total
