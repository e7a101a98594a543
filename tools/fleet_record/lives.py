"""The lives of a fleet, what is done to it meanwhile, and the record of them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from harness.fleet import api
from harness.fleet.item import Item
from harness.fleet.outcome import CandidateResult
from harness.running import environment

#: What each candidate is judged by.
OPTIONS = ("--dtype=float32", "--property=forward-parity")
#: Seconds for one candidate on a busy machine.
_LIMIT = 300.0


class Watch:
    """Writes down each start, so that one that was not needed is found; does harm at the right moment."""

    def __init__(self, log: Path, cluster: Any, count: int) -> None:
        self._log, self._cluster, self._count = log, cluster, count

    def started(self, id: str, worker: str) -> None:
        self._note("started", id, worker)

    def finished(self, result: CandidateResult) -> None:
        self._note("finished", result.id, result.worker)
        done = sum(line.startswith("finished") for line in self._log.read_text().splitlines())
        if done == self._count // 4:
            self._kill_a_worker()
        elif done == self._count // 2:
            self._note("lost-node", str(self._cluster.nodes[0].unique_id), "")
            self._cluster.remove_node(self._cluster.nodes[0], allow_graceful=False)
            self._cluster.nodes = [*self._cluster.nodes[1:], self._cluster.add_node(num_cpus=1)]
        elif done == 3 * self._count // 4:
            self._note("killed-head", str(os.getpid()), "")
            os.kill(os.getpid(), signal.SIGKILL)

    def lost(self, id: str, worker: str) -> None:
        self._note("lost", id, worker)

    def kept(self, result: CandidateResult) -> None:
        """It was there before the head was killed."""

    def forget(self, ids: Sequence[str]) -> None:
        for id in ids:
            self._note("forgotten", id, "")

    def tick(self) -> None:
        """Nothing is shown."""

    def _kill_a_worker(self) -> None:
        """End a worker that judges at this moment: it has a child that is a judge."""
        for process in psutil.process_iter(["cmdline"]):
            with suppress(psutil.Error):
                if "harness.fleet.worker" in (process.info["cmdline"] or ()) and len(process.children()) > 1:
                    self._note("killed-worker", str(process.pid), "")
                    process.kill()
                    return

    def _note(self, *words: str) -> None:
        with self._log.open("a") as log:
            log.write("\t".join(words) + "\n")


def _run(items: Sequence[Item], results: Path, log: Path, nodes: int) -> None:
    """One life of the fleet, with a cluster of its own, which ends with it."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    cluster.nodes = [cluster.add_node(num_cpus=1) for _ in range(nodes)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
    plan = api.FleetPlan(device="cpu", options=OPTIONS, limit=_LIMIT, workers=nodes, ray="auto")
    for _ in api.run(items, plan, results, [Watch(log, cluster, len(items))]):
        pass
    ray.shutdown()
    cluster.shutdown()


def lived(items: Sequence[Item], results: Path, log: Path, nodes: int) -> bool:
    """Whether a life of the fleet came to its end; what it has left behind is ended."""
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(items, results, log, nodes))
    process.start()
    children: set[psutil.Process] = set()
    while process.is_alive():
        with suppress(psutil.Error):
            children |= set(psutil.Process(process.pid).children(recursive=True))
        process.join(1.0)
    for child in children:
        with suppress(psutil.Error):
            child.kill()
    return process.exitcode == 0


def record(items: Sequence[Item], results: Path, log: Path, seconds: float) -> dict[str, Any]:
    """What is known after the last life of the fleet."""
    notes = [line.split("\t") for line in log.read_text().splitlines()]
    with sqlite3.connect(results) as data:
        rows = list(data.execute("select id, state, verdict, cpu_seconds, attempts from candidates"))
    done = [row for row in rows if row[1] == "done"]
    starts = Counter(words[1] for words in notes if words[0] == "started")
    ends = Counter(words[1] for words in notes if words[0] == "finished")
    again = {id for id, count in starts.items() if count > 1}
    lost_workers = {words[1] for words in notes if words[0] == "lost"}
    # Those that were running when the head was killed have no end before it.
    at_the_head: set[str] = set()
    for words in notes:
        if words[0] == "started":
            at_the_head.add(words[1])
        elif words[0] in ("finished", "lost"):
            at_the_head.discard(words[1])
        elif words[0] == "killed-head":
            break
    return {
        "kind": "fleet",
        "schema": 1,
        "candidates": len(items),
        "operators": dict(sorted(Counter(item.operator for item in items).items())),
        "options": list(OPTIONS),
        "verdicts": dict(Counter(row[2] for row in done)),
        "lost": len(items) - len({row[0] for row in done}),
        "judged_twice": sum(count > 1 for count in ends.values()),
        "started_again": {
            "after_a_worker_or_node": len(again & lost_workers),
            "after_the_head": len(again & at_the_head),
        },
        "started_again_without_need": len(again - lost_workers - at_the_head),
        "harm": [words[0] for words in notes if words[0] in ("killed-worker", "lost-node", "killed-head")],
        "seconds": round(seconds, 1),
        "a_minute": round(60 * len(done) / seconds, 1),
        "judge_cpu_seconds": round(statistics.fmean(row[3] for row in done), 3),
        "cores": len(os.sched_getaffinity(0)),
        "load": [round(value, 2) for value in os.getloadavg()],
        "nice": os.nice(0),
        "environment": {
            k: v for k, v in environment.describe().items() if k in ("cpu", "torch", "python", "commit", "time")
        },
    }
