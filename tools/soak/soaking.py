"""The run: give batches to workers until the time or the calls are used up, and keep the state on disk."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.running import environment
from tools.soak.batch import EXAMPLES, TIMES, Outcome, Place
from tools.soak.state import State
from tools.soak.workers import LIMIT, Worker, ready

#: Seconds between two writes of the state, and between two lines of progress.
WRITE_EVERY, SAY_EVERY = 10.0, 60.0
#: Calls of an operator in a dtype that come before more calls of those whose calls take less time.
EQUAL = 5_000


@dataclass(frozen=True)
class Limits:
    """When a run ends: after so many seconds, or where the state has so many calls in all."""

    seconds: float | None = None
    calls: int | None = None


class Soak:
    """One run. `stop` ends it before its limits."""

    def __init__(self, state: State, path: Path, places: Sequence[Place], say: Callable[[str], None]) -> None:
        self.state, self._path, self._places, self._say = state, path, list(places), say
        self._stopped = False
        self._start = time.monotonic()
        self._written = self._said = 0.0
        found = environment.describe()
        on_gpu = any(place.device == "cuda" for place in places)
        machine = found["gpu"] if on_gpu else found["cpu"]
        self._where = {"commit": found["commit"], "torch": found["torch"], "machine": machine}
        self._run: dict[str, Any] = {
            "began": found["time"],
            **self._where,
            "dirty": found["dirty"],
            "python": found["python"],
            "workers": 1,
            "seconds": 0.0,
            "calls": 0,
            "alarms": 0,
        }

    def stop(self) -> None:
        """Stop at once: batches in progress are dropped, and drawn again by the next run."""
        self._stopped = True

    def run(self, limits: Limits, workers: int, scenarios: int = EXAMPLES) -> None:
        """Run to the limits, in batches of so many scenarios. Raises BatchError.

        The state is written at the end, whatever happens.
        """
        self._run["workers"] = count = min(workers, len(self._places))
        self.state.runs.append(self._run)
        pool = [Worker(scenarios) for _ in range(count)]
        try:
            while not self._stopped:
                if not self._is_over(limits):
                    self._order(pool)
                elif all(worker.place is None for worker in pool):
                    break
                self._collect(pool, scenarios)
        finally:
            for worker in pool:
                worker.stop()
            self._write()

    def _is_over(self, limits: Limits) -> bool:
        seconds = time.monotonic() - self._start
        in_time = limits.seconds is None or seconds < limits.seconds
        return not in_time or (limits.calls is not None and self.state.calls() >= limits.calls)

    def _order(self, pool: list[Worker]) -> None:
        """Give each idle worker a place that no other has: its batches stay in order."""
        for worker in pool:
            if worker.place is None:
                taken = {other.place for other in pool}
                place = min((place for place in self._places if place not in taken), key=self._so_far)
                worker.begin(place, self.state.next_seed(place))

    def _so_far(self, place: Place) -> tuple[bool, bool, float, int]:
        """Every place gets a batch first. Then operators and dtypes get the same number of calls on the device.

        Beyond `EQUAL` calls they get the same time instead. The forms of an operator get the same number of calls.
        """
        rows = [
            row
            for row in self.state.places
            if (row["operator"], row["dtype"], row["device"]) == (place.operator, place.dtype, place.device)
        ]
        own = sum(row["calls"] for row in rows if row["form"] == place.form)
        calls = sum(row["calls"] for row in rows)
        seconds = sum(row[name] for row in rows for name in TIMES)
        has_equal = calls >= EQUAL
        return self.state.next_seed(place) > 0, has_equal, seconds if has_equal else calls, own

    def _collect(self, pool: list[Worker], scenarios: int) -> None:
        for worker in ready(pool, timeout=1.0):
            self._add(worker, worker.result())
            if not worker.is_alive:
                pool[pool.index(worker)] = _replaced(worker, scenarios)
        for worker in [worker for worker in pool if worker.is_late()]:
            self._add(worker, worker.ended(f"no result within {LIMIT:.0f} s in this call"))
            pool[pool.index(worker)] = _replaced(worker, scenarios)
        now = time.monotonic() - self._start
        if now - self._written >= WRITE_EVERY:
            self._written = now
            self._write()
        if now - self._said >= SAY_EVERY:
            self._said = now
            self._say(self.progress())

    def _add(self, worker: Worker, outcome: Outcome) -> None:
        assert worker.place is not None
        before = len(self.state.finds)
        self.state.add(worker.place, worker.number, outcome, self._where)
        self._run["calls"] += sum(counts.calls for counts in outcome.counts.values())
        self._run["alarms"] += sum(counts.alarms for counts in outcome.counts.values())
        worker.place = None
        for find in self.state.finds[before:]:
            self._say(described(find))

    def _write(self) -> None:
        self._run["seconds"] = round(time.monotonic() - self._start, 1)
        self.state.write(self._path)

    def progress(self) -> str:
        """`12 min: 101,234 calls (150 a second), 0 alarms; 203,000 calls in all`."""
        seconds = max(time.monotonic() - self._start, 1e-3)
        calls, alarms = self._run["calls"], self._run["alarms"]
        return (
            f"{seconds / 60:.0f} min: {calls:,} calls ({calls / seconds:.0f} a second), {alarms:,} alarms; "
            f"{self.state.calls():,} calls in all"
        )


def described(find: dict[str, Any]) -> str:
    """A find in one line and its reason."""
    failed = len(find["failed"])
    where = f"{find['operator']}{'[' + find['form'] + ']' if find['form'] else ''} {find['dtype']} on {find['device']}"
    return (
        f"find: {where}: {find['implementation']}, {find['verdict']}; {failed} of {failed + len(find['passed'])} right "
        f"implementations fail there: {find['reason'].splitlines()[0]}"
    )


def _replaced(worker: Worker, scenarios: int) -> Worker:
    worker.stop()
    return Worker(scenarios)


@contextmanager
def stopped_by_signals(soak: Soak) -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the run, and its state is written."""
    before = {number: signal.signal(number, lambda *_: soak.stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
