"""Which candidate goes to which worker, and what happens if a worker dies: the same for processes and for Ray."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.errors import UsageError
from harness.fleet.item import Item
from harness.fleet.outcome import REFUSED, CandidateResult, Outcome
from harness.fleet.request import Request

#: A candidate whose worker or judge died is judged once more, elsewhere.
TRIES = 2
#: As many first results that are refused with the same words end a fleet.
_ALIKE = 3
#: Seconds above the limit after which a worker that has not ended its judge is ended itself.
_MARGIN = 60.0
#: Seconds after which the display is drawn again even if nothing has happened.
_TICK = 0.5


class Pool(Protocol):
    """Workers. Each has a name, and judges one candidate at a time."""

    def idle(self) -> list[str]:
        """The names of the workers that wait for a candidate."""

    def places(self) -> set[str]:
        """The names of all workers that are ready."""

    def submit(self, worker: str, request: Request) -> None:
        """Have an idle worker judge this."""

    def end(self, worker: str) -> None:
        """End a worker that does not answer: it counts as one that died."""

    def wait(self, seconds: float) -> list[tuple[str, Outcome]]:
        """What has come back after that time at the latest: the answers, and DIED for each worker that died.

        Raises Broken if workers cannot be started.
        """

    def close(self) -> None:
        """End all workers."""


@dataclass
class Job:
    """A candidate in the queue: how often it was tried, and where it must not be tried again."""

    item: Item
    attempts: int = 0
    avoid: str = ""
    #: When its worker is ended, by the clock of `time.monotonic`.
    latest: float = 0.0


class Observer(Protocol):
    """Who is told what happens."""

    def started(self, id: str, worker: str) -> None: ...

    def finished(self, result: CandidateResult) -> None: ...

    def lost(self, id: str, worker: str) -> None: ...

    def kept(self, result: CandidateResult) -> None: ...

    def forget(self, ids: Sequence[str]) -> None: ...

    def tick(self) -> None: ...


class Schedule:
    """Judge the items on the pool."""

    def __init__(
        self, items: Sequence[Item], pool: Pool, options: list[str], limit: float, watches: Sequence[Observer]
    ) -> None:
        self._queue = deque(Job(item) for item in items)
        self._pool, self._options, self._limit, self._watches = pool, options, limit, watches
        self._running: dict[str, Job] = {}
        #: The first results, until one tells that the options are not wrong.
        self._first: list[CandidateResult] | None = []

    def run(self) -> Iterator[CandidateResult]:
        """Each result as soon as it is there. Raises Broken if workers cannot be started."""
        while self._queue or self._running:
            self._fill()
            for worker, found in self._pool.wait(_TICK):
                job = self._running.pop(worker, None)
                result = self._judged(job, worker, found) if job is not None else None
                if result is not None:
                    for watch in self._watches:
                        watch.finished(result)
                    self._require_sense(result)
                    yield result
            self._end_the_silent()
            for watch in self._watches:
                watch.tick()

    def _end_the_silent(self) -> None:
        """End the workers that have not kept the time limit: something has stopped them."""
        for worker, job in self._running.items():
            if time.monotonic() > job.latest:
                self._pool.end(worker)
                job.latest += _MARGIN

    def _fill(self) -> None:
        places = self._pool.places()
        for worker in self._pool.idle():
            job = self._next(worker, alone=places <= {worker})
            if job is not None:
                self._pool.submit(worker, Request.of(job.item, self._options, self._limit))
                self._running[worker] = job
                job.latest = time.monotonic() + self._limit + _MARGIN
                for watch in self._watches:
                    watch.started(job.item.id, worker)

    def _next(self, worker: str, alone: bool) -> Job | None:
        """The first of the queue that this worker may judge; a single worker may judge all."""
        for number, job in enumerate(self._queue):
            if alone or job.avoid != worker:
                del self._queue[number]
                return job
        return None

    def _judged(self, job: Job, worker: str, found: Outcome) -> CandidateResult | None:
        """The result; None if the candidate is to be tried once more."""
        job.attempts += 1
        if found.verdict or job.attempts >= TRIES:
            return CandidateResult.of(job.item.id, found, job.attempts, worker)
        job.avoid = worker
        self._queue.appendleft(job)
        for watch in self._watches:
            watch.lost(job.item.id, worker)
        return None

    def _require_sense(self, result: CandidateResult) -> None:
        """Raise UsageError if the first results are refused with the same words: the options are wrong."""
        if self._first is None:
            return
        self._first.append(result)
        if result.verdict != REFUSED or result.sentence != self._first[0].sentence:
            self._first = None
        elif len(self._first) == _ALIKE:
            for watch in self._watches:
                watch.forget([found.id for found in self._first])
            raise UsageError(f"the first {_ALIKE} candidates were refused alike: {result.sentence}")
