"""Workers on this machine: processes, each with a share of the cores, and a GPU of its own where the device is cuda."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO

from harness.errors import Broken, HarnessError
from harness.executing.module_path import with_this_tree
from harness.fleet.outcome import DIED, Outcome
from harness.fleet.request import Request

#: Workers in a row that end before they are ready, after which the fleet ends.
_FAILED_STARTS = 3
#: Bytes that are read at a time from a worker.
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a worker runs: its name, and the variables that give it its cores and its GPU."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)


class WorkerProcess:
    """One worker, and the pipe from which its answers come."""

    def __init__(self, place: Place, root: Path, command: Sequence[str]) -> None:
        """`root` is a folder for its files; with a `command`, it judges by that command, else by forks of itself."""
        self.place = place
        self._said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the worker lives
        program = [sys.executable, "-P", "-m", "harness.fleet.worker", f"--root={root}", f"--parent={os.getpid()}"]
        self._process = subprocess.Popen(
            [*program, f"--command={json.dumps(list(command)) if command else ''}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**os.environ, "PYTHONPATH": with_this_tree(os.environ), **place.variables},
            start_new_session=True,  # Ctrl-C is for the fleet, which ends its workers
        )
        self._read = b""
        self.ready = self.busy = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        """Of its answers, for a selector."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def ask(self, request: Request) -> None:
        """Send a request. A worker that has just died is noticed when its answer is read."""
        assert self._process.stdin is not None
        self.busy = True
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asdict(request)).encode() + b"\n")
            self._process.stdin.flush()

    def receive(self) -> list[Outcome] | None:
        """The answers that are there now; None if the worker has ended, or answered something else."""
        block = os.read(self.fileno(), _BLOCK)
        if not block:
            return None
        *lines, self._read = (self._read + block).split(b"\n")
        found = []
        for line in lines:
            try:
                record = json.loads(line)
                if not self.ready:
                    self.ready = bool(record["ready"])
                    continue
                found.append(Outcome.of(record))
            except (ValueError, TypeError, KeyError):
                return None
            self.busy = False
        return found

    def kill(self) -> None:
        """End it, and whatever it has started."""
        self._process.kill()

    def stop(self) -> str:
        """End it and close its pipes; returns the last line of what it said."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert pipe is not None
                pipe.close()
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        self._said.close()
        return lines[-1] if lines else "it said nothing"


class LocalPool:
    """Worker processes; one that dies is replaced."""

    def __init__(self, places: Sequence[Place], root: Path, command: Sequence[str] = ()) -> None:
        self._root, self._command = root, command
        self._selector = selectors.DefaultSelector()
        self._workers: dict[str, WorkerProcess] = {}
        self._failed = 0
        try:
            for place in places:
                self._start(place)
        except BaseException:
            self.close()
            raise

    def _start(self, place: Place) -> None:
        worker = self._workers[place.name] = WorkerProcess(place, self._root, self._command)
        self._selector.register(worker, selectors.EVENT_READ, worker)

    def idle(self) -> list[str]:
        """The names of the workers that wait for a candidate."""
        return [name for name, worker in self._workers.items() if worker.ready and not worker.busy]

    def places(self) -> set[str]:
        """The names of all workers that are ready."""
        return {name for name, worker in self._workers.items() if worker.ready}

    def pids(self) -> dict[str, int]:
        """The process of each worker."""
        return {name: worker.pid for name, worker in self._workers.items()}

    def submit(self, worker: str, request: Request) -> None:
        """Have an idle worker judge this."""
        self._workers[worker].ask(request)

    def end(self, worker: str) -> None:
        """End a worker that does not answer: it counts as one that died."""
        self._workers[worker].kill()

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """The answers, and DIED for each worker that died over a candidate. Raises Broken if workers do not start."""
        found: list[tuple[str, Outcome]] = []
        for key, _ in self._selector.select(seconds):
            worker: WorkerProcess = key.data
            answers = worker.receive()
            if answers is None:
                found += self._replaced(worker)
            else:
                self._failed = 0
                found += [(worker.place.name, answer) for answer in answers]
        return found

    def _replaced(self, worker: WorkerProcess) -> list[tuple[str, Outcome]]:
        self._selector.unregister(worker)
        del self._workers[worker.place.name]
        last = worker.stop()
        self._failed += not worker.ready
        if self._failed >= _FAILED_STARTS:
            raise Broken(f"the workers of the fleet do not start; the last one said: {last}")
        self._start(worker.place)
        return [(worker.place.name, DIED)] if worker.busy else []

    def close(self) -> None:
        """End all workers; what they were judging ends with them."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()
        self._selector.close()


def places(workers: int, gpus: Sequence[str] = ()) -> list[Place]:
    """`workers` places that share the cores evenly; with `gpus`, the GPUs of CUDA_VISIBLE_DEVICES in turn.

    Raises HarnessError for fewer than one worker.
    """
    if workers < 1:
        raise HarnessError(f"a fleet has {workers} workers, but should have at least 1")
    threads = str(max(1, cores() // workers))
    found = []
    for number in range(workers):
        variables = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
        if gpus:
            variables["CUDA_VISIBLE_DEVICES"] = gpus[number % len(gpus)]
        found.append(Place(f"worker-{number + 1}", variables))
    return found


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """The GPUs of this machine, as CUDA_VISIBLE_DEVICES names them; found without torch and without CUDA."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split() if done.returncode == 0 else []
