"""Workers on a Ray cluster: an actor each, which holds a worker process on its node.

An actor asks for one CPU, and for a GPU, or the share of one, if the device is cuda; Ray names its GPU in
CUDA_VISIBLE_DEVICES. The suite must be installed on each node. Source texts travel with a request; files, those of
references too, must be at the same path on each node (a shared file system).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.errors import Broken, Unavailable, UsageError
from harness.fleet.local import LocalPool, Place
from harness.fleet.outcome import DIED, Outcome
from harness.fleet.request import Request

#: Start a cluster of this machine alone.
LOCAL = "local"
#: Workers in a row that end before they are ready, after which the fleet ends.
_FAILED_STARTS = 3


class RemoteWorker:
    """What runs in an actor: a pool of one worker process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="fleet-"))
        self._pool = LocalPool([Place("worker")], self._root, command)

    def ready(self) -> str:
        """Wait until the worker is ready; returns the id of its node. Raises Broken."""
        import ray

        while not self._pool.idle():
            self._pool.wait(1.0)
        return str(ray.get_runtime_context().get_node_id())

    def judge(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer as a dict. A worker process that died is replaced."""
        self.ready()
        self._pool.submit("worker", Request(**request))
        while True:
            for _, answer in self._pool.wait(1.0):
                return asdict(answer)

    def stop(self) -> None:
        """End the worker process and remove its files."""
        self._pool.close()
        shutil.rmtree(self._root, ignore_errors=True)


class RayPool:
    """One actor for each worker; one that dies is replaced, on any node that has room."""

    def __init__(self, address: str, device: str, workers: int, per_gpu: int, command: Sequence[str] = ()) -> None:
        """Raises Unavailable if Ray is not installed, or if there is no such cluster or no GPU in it."""
        try:
            import ray
        except ImportError:
            raise Unavailable('--ray needs Ray: pip install "lltm-conformance[fleet]"') from None
        self._ray = ray
        if not ray.is_initialized():
            try:
                ray.init(address=None if address == LOCAL else address, log_to_driver=False, configure_logging=False)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise Unavailable(f"--ray {address}: {error}") from None
        resources = ray.cluster_resources()
        share = 1 / per_gpu if device == "cuda" else 0.0
        room = int(resources.get("GPU", 0) * per_gpu) if share else int(resources.get("CPU", 0))
        if room < 1:
            raise Unavailable(f"the Ray cluster has no {'GPU' if share else 'CPU'}")
        if workers > room:
            raise UsageError(f"--workers was {workers}, but should be at most {room}: the cluster has room for no more")
        self._actor = ray.remote(num_cpus=1, num_gpus=share, max_restarts=0, max_task_retries=0)(RemoteWorker)
        self._command = tuple(command)
        self._workers: dict[str, Any] = {}
        self._nodes: dict[str, str] = {}
        #: What is awaited, and of which worker: its start or a reply.
        self._awaited: dict[Any, str] = {}
        self._busy: set[str] = set()
        self._failed = self._number = 0
        for _ in range(workers or room):
            self._start()

    def _start(self) -> None:
        self._number += 1
        name = f"ray-{self._number}"
        self._workers[name] = self._actor.remote(self._command)
        self._awaited[self._workers[name].ready.remote()] = name

    def idle(self) -> list[str]:
        """The names of the workers that wait for a candidate."""
        return [name for name in self._nodes if name not in self._busy]

    def places(self) -> set[str]:
        """The names of all workers that are ready."""
        return set(self._nodes)

    def submit(self, worker: str, request: Request) -> None:
        """Have an idle worker judge this."""
        self._busy.add(worker)
        self._awaited[self._workers[worker].judge.remote(asdict(request))] = worker

    def end(self, worker: str) -> None:
        """End a worker that does not answer: it counts as one that died."""
        self._ray.kill(self._workers[worker])

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """The answers, and DIED for each worker that died over a candidate. Raises Broken if workers do not start."""
        if not self._awaited:
            time.sleep(seconds)
            return []
        awaited = list(self._awaited)
        ready, _ = self._ray.wait(awaited, timeout=seconds)
        if ready:  # all that are ready by now: each look at a thousand of them costs milliseconds
            ready, _ = self._ray.wait(awaited, num_returns=len(awaited), timeout=0)
        found = []
        for reference in ready:
            name = self._awaited.pop(reference)
            try:
                value = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                found += self._replaced(name, error)
                continue
            if name in self._busy:
                self._busy.discard(name)
                found.append((name, Outcome.of(value)))
            else:
                self._failed = 0
                self._nodes[name] = value
        return found

    def _replaced(self, name: str, error: Exception) -> list[tuple[str, Outcome]]:
        """Start another actor: Ray places it on a node that is there."""
        was_ready, was_busy = name in self._nodes, name in self._busy
        self._nodes.pop(name, None)
        self._busy.discard(name)
        with suppress(Exception):
            self._ray.kill(self._workers.pop(name))
        self._failed += not was_ready
        if self._failed >= _FAILED_STARTS:
            raise Broken(f"the workers of the fleet do not start on the Ray cluster: {str(error).splitlines()[-1]}")
        self._start()
        return [(name, DIED)] if was_busy else []

    def nodes(self) -> dict[str, str]:
        """The node of each worker that is ready."""
        return dict(self._nodes)

    def close(self) -> None:
        """End all workers. The cluster is left as it is."""
        for worker in self._workers.values():
            with suppress(Exception):  # its node may be gone
                self._ray.kill(worker)
        self._workers.clear()
