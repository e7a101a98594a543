"""Processes that run batches. One that ends, hangs or loses its device in a call is replaced: the call is an alarm."""

from __future__ import annotations

import json
import logging
import multiprocessing
import signal
import time
import traceback
import warnings
from multiprocessing.connection import Connection, wait
from multiprocessing.sharedctypes import SynchronizedString
from typing import Any, cast

import torch

from harness.errors import HarnessError
from harness.judging.scenario import Scenario
from harness.running.candidate_process import lost
from tools.soak import batch
from tools.soak.batch import Counts, LostDevice, Outcome, Place, find_of
from tools.soak.calling import ERROR, Result
from tools.soak.scenario_json import to_json

#: Seconds after which a batch counts as hanging. The first of an operator may compile for minutes.
LIMIT = 1800.0
#: Bytes for the call that a worker makes at present, as JSON.
_ROOM = 4096


class BatchError(HarnessError):
    """A batch could not be run: the suite or the machine is at fault, so no other seed would help."""


class Worker:
    """One process, and the batch that it runs at present; it draws so many `scenarios` for each."""

    def __init__(self, scenarios: int = batch.EXAMPLES) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process could not use CUDA or thread pools
        self.connection, theirs = context.Pipe()
        self._now = cast(SynchronizedString, context.Array("c", _ROOM))
        self._process = context.Process(target=_serve, args=(theirs, self._now, scenarios), daemon=True)
        self._process.start()
        theirs.close()
        self.place: Place | None = None
        self.number = 0
        self._began = 0.0

    def begin(self, place: Place, number: int) -> None:
        """Run the batch of that number."""
        self.place, self.number, self._began = place, number, time.monotonic()
        self._now.value = b""
        self.connection.send((place, number))

    def is_late(self, limit: float = LIMIT) -> bool:
        """Whether its batch takes too long."""
        return self.place is not None and time.monotonic() - self._began > limit

    def result(self) -> Outcome:
        """The outcome of its batch, which is ready; or of the call in which its process ended. Raises BatchError."""
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            return self.ended(f"the process ended with exit code {self._process.exitcode} in this call")
        if isinstance(answer, LostDevice):
            self.stop()
            return self.ended(f"the process {lost(str(answer))} in this call")
        if isinstance(answer, str):
            raise BatchError(f"{self.place}, batch {self.number}: {answer}")
        outcome: Outcome = answer
        return outcome

    def ended(self, why: str) -> Outcome:
        """The outcome of a batch that was cut off: one alarm. Raises BatchError if it had made no call."""
        assert self.place is not None
        if not self.now:
            raise BatchError(f"{self.place}, batch {self.number}: {why.removesuffix(' in this call')} before its calls")
        device, name, scenario = json.loads(self.now)  # as `note` wrote it
        find = find_of(self.place, device, name, self.number, Result(ERROR, why), scenario)
        counts = {self.place.device: Counts(), device: Counts(scenarios=1, alarmed=1, calls=1, alarms=1)}
        return Outcome(counts=counts, finds=[{**find, "failed": {name: why}, "passed": []}])

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()
        self.connection.close()

    @property
    def is_alive(self) -> bool:
        """Whether it can run another batch."""
        return self._process.is_alive()

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def now(self) -> bytes:
        """The call that it makes at present, as JSON; empty before the first."""
        found: bytes = self._now.value
        return found


def ready(workers: list[Worker], timeout: float) -> list[Worker]:
    """The workers whose batch has a result, after at most `timeout` seconds."""
    busy = {worker.connection: worker for worker in workers if worker.place is not None}
    return [busy[connection] for connection in wait(list(busy), timeout) if isinstance(connection, Connection)]


def _serve(connection: Connection, now: SynchronizedString, scenarios: int) -> None:
    """The process: run batches until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes; the parent ends this one
    torch.set_num_threads(1)
    # It gives up compiling a control anew for each size, and says so; the control is then called as it is.
    logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")

    def note(device: str, implementation: str, scenario: Scenario) -> None:
        now.value = json.dumps([device, implementation, to_json(scenario)]).encode()

    while True:
        try:
            place, number = connection.recv()
        except EOFError:
            return
        connection.send(_answer(place, number, note, scenarios))


def _answer(place: Place, number: int, note: batch.Note, scenarios: int = batch.EXAMPLES) -> Any:
    """The outcome of a batch, or the error that it raised as text."""
    try:
        return batch.run(place, number, note, scenarios)
    except LostDevice as lost:
        return lost
    except HarnessError as error:
        return str(error)
    except Exception:
        return traceback.format_exc()
