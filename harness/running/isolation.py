"""Judge in a separate process, with limits on time and memory: what a candidate does there costs at most one cell.

The process is started once and judges cell after cell; it is started again after it died or was ended. Its parent
only waits and watches, so no crash, hang, exit() or leak affects the parent.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from harness.errors import HarnessError, UsageError
from harness.judging import exit_status, traced
from harness.judging import judge as judging
from harness.judging.property import Property
from harness.properties import all_properties
from harness.report.cell import FAIL, Cell
from harness.running.selection import Selection, Slot, slots

_START_LIMIT = 300.0  # includes imports, and builds that the candidate starts at import
_PAGE = 4096


@dataclass(frozen=True)
class Limits:
    """For one cell: seconds, and bytes of resident memory above what the process had when it was ready."""

    seconds: float = 300.0
    memory: int = 8 * 2**30


def _serve(connection: Connection, selection: Selection, extra: tuple[Property, ...], trace: str) -> None:
    """The main function of the process: save the judge's functions, import the candidates, judge what is requested."""
    torch.set_num_threads(1)
    properties = {**all_properties(), **{property.name: property for property in extra}}
    judging.bind()
    traced.FILE = trace
    try:
        known = {slot.id: slot for slot in slots(selection)}
    except HarnessError as error:
        connection.send(UsageError(str(error)))  # same message; not every error can be pickled
        return
    connection.send(sorted(known))
    while True:
        slot_id, name = connection.recv()
        try:
            connection.send(known[slot_id].judge(properties[name]))
        except Exception as error:  # an error of the harness: the parent raises it
            connection.send(HarnessError(f"{type(error).__name__}: {error}"))


class Isolation:
    """A process that judges, and its supervision."""

    def __init__(self, selection: Selection, limits: Limits, extra: tuple[Property, ...] = ()) -> None:
        """`extra` are properties beyond those of `harness.properties`."""
        self._selection, self._limits, self._extra = selection, limits, extra
        self._process: Any = None
        self._connection: Connection | None = None
        #: The file to which the process writes what it is about to do.
        self._trace = ""

    def start(self) -> None:
        """Start the process and wait until it has imported the candidates.

        Raises what the process raised, and UsageError if it died or hung.
        """
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        if not self._trace:
            handle, self._trace = tempfile.mkstemp(prefix="call-")
            os.close(handle)
        arguments = (theirs, self._selection, self._extra, self._trace)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        answer, why = self._answer(_START_LIMIT, None)
        if isinstance(answer, HarnessError):
            self.stop()
            raise answer
        if why:
            raise UsageError(f"the process that imports the candidates {why}")
        self._base = self._resident()

    def judge(self, slot: Slot, property: str) -> Cell:
        """The cell, judged in the process; a `fail` if the process died or exceeded a limit. Raises HarnessError."""
        if self._process is None:
            self.start()
        assert self._connection is not None
        began = time.monotonic()
        Path(self._trace).write_text("")
        self._connection.send((slot.id, property))
        answer, why = self._answer(self._limits.seconds, self._base + self._limits.memory)
        if isinstance(answer, HarnessError):
            raise answer
        if isinstance(answer, Cell):
            return answer
        reason = f"the process {why} while {property} was judged, but should return"
        call, _, script = Path(self._trace).read_text().partition("\n")
        cell = slot.cell(property, FAIL, f"{reason} [{call}]" if call else reason, time.monotonic() - began)
        return replace(cell, figures={"reproducer": script}) if script else cell

    def stop(self) -> None:
        """End the process, if there is one, and remove its files."""
        self._kill()
        if self._trace:
            Path(self._trace).unlink(missing_ok=True)
            self._trace = ""

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _answer(self, seconds: float, memory: int | None) -> tuple[object, str]:
        """(the answer, "") or (None, what happened to the process); in the second case the process has ended."""
        assert self._connection is not None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(EOFError, OSError):
                if self._connection.poll(0.05):
                    return self._connection.recv(), ""
            if not self._process.is_alive():
                self._process.join()
                ended = exit_status.in_words(self._process.exitcode)
                self._process = None
                return None, ended
            if memory is not None and self._resident() > memory:
                self._kill()
                return None, f"took more than {self._limits.memory / 2**30:.3g} GB of memory"
        self._kill()
        return None, f"was still running after {seconds:.0f} s"

    def _resident(self) -> int:
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE
        return 0
