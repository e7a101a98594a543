"""The gate's side of a worker: a process that measures one tree and answers requests on a socket."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.errors import HarnessError, Unavailable

_SCRIPT = Path(__file__).parent / "worker.py"
#: The time limit of a request in seconds: the longest is a build of one operator.
TIMEOUT = 900.0
#: A request for a block takes up to this many times as long as the block, and this many seconds more.
_FACTOR, _REQUEST = 1.5, 0.001


class WorkerFailed(HarnessError):
    """A worker answered with an error, died or hung. The message has the tree, the request and the answer."""


class SuspectTimes(WorkerFailed):
    """The times that a worker reported cannot be those of its requests."""


class Worker:
    """One process, for one tree. Requests raise WorkerFailed, or Unavailable if this machine cannot run the code."""

    def __init__(self, tree: Path, threads: int, cache: Path | None = None, prefix: Sequence[str] = ()) -> None:
        """Start it; `cache` is its folder for builds, `prefix` a program that runs it, such as valgrind."""
        self.tree = tree
        ours, theirs = socket.socketpair()
        ours.settimeout(TIMEOUT)
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "PYTHONHASHSEED": "0",
            # Threads that wait by spinning would take the core from the other worker.
            "OMP_WAIT_POLICY": "PASSIVE",
            "OMP_NUM_THREADS": str(threads),
            **({"LLTM_CONFORMANCE_CACHE": str(cache)} if cache else {}),
        }
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - as long as the worker lives
        with theirs:
            command = [*prefix, sys.executable, "-P", str(_SCRIPT), str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, cwd=tree, env=environment, pass_fds=[theirs.fileno()], stdout=self._said, stderr=self._said
            )
        self._socket, self._channel = ours, ours.makefile("rw", encoding="utf-8")
        self._threads = threads
        #: Of each block since the last `prepare`: the seconds that it reported, and those until its answer was here.
        self._blocks: list[tuple[float, float]] = []

    def greet(self) -> None:
        """Wait until it has loaded torch and its tree. Raises WorkerFailed."""
        self.ask("hello", threads=self._threads)

    def ask(self, what: str, **fields: Any) -> Any:
        """The worker's answer."""
        if what == "prepare":
            self._blocks = []
        began = time.perf_counter()
        try:
            self._channel.write(json.dumps({"do": what, **fields}) + "\n")
            self._channel.flush()
            line = self._channel.readline()
        except OSError as error:
            raise self._failed(what, f"{type(error).__name__}: {error}") from error
        if not line:
            raise self._failed(what, "it ended")
        answer = json.loads(line)
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        if "error" in answer:
            raise self._failed(what, answer["error"])
        if what == "time":
            self._blocks.append((float(answer["result"]), time.perf_counter() - began))
        return answer["result"]

    def hold_times(self, device: str) -> None:
        """Hold the times that were reported since `prepare` against this process's clock. Raises SuspectTimes.

        On the CPU nearly all the time of a request is its block; on CUDA caches are overwritten in it, too.
        """
        for reported, waited in self._blocks:
            if not 0 < reported <= waited:
                raise SuspectTimes(f"the worker of {self.tree} reported {reported:.3g} s for {waited:.3g} s")
        if device == "cpu" and self._blocks:
            reported, waited = (statistics.median(column) for column in zip(*self._blocks, strict=True))
            if waited > _FACTOR * reported + _REQUEST:
                raise SuspectTimes(
                    f"the worker of {self.tree} reported {reported:.3g} s for blocks after which it answered in "
                    f"{waited:.3g} s"
                )

    def _failed(self, what: str, why: str) -> WorkerFailed:
        self._said.seek(0)
        said = self._said.read().strip()[-2000:]
        return WorkerFailed(f"the worker of {self.tree} was asked to {what}, but: {why}{': ' + said if said else ''}")

    def stop(self) -> None:
        """End the process: it ends by itself when the socket is closed."""
        with contextlib.suppress(OSError):
            self._channel.close()
        self._socket.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


@contextlib.contextmanager
def workers(trees: Sequence[Path], threads: int) -> Iterator[list[Worker]]:
    """One worker for each tree, all of one launch; they load in parallel."""
    started: list[Worker] = []
    try:
        started += (Worker(tree, threads) for tree in trees)
        for worker in started:
            worker.greet()
        yield started
    finally:
        for worker in started:
            worker.stop()
