"""Time a candidate in its process: the clock stands here, and a sample of what was timed is verified.

What the candidate's process says is believed only as far as it can be checked. Times are those of this process. The
inputs of a call are known to the candidate only when the clock runs. After a block, a digest of every result is asked
for, and its time is watched too, so that no work is put off; then results of calls that are drawn only now must have
these digests and be right.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

from torch import Tensor

from backends.base import CUDA
from harness.bench import correctness
from harness.bench.blocks import LEAST, Ask, BlockTimer, Plan, Ring
from harness.bench.record import WRONG
from harness.bench.rounds import interval
from harness.discovery import FoundBackend
from harness.errors import Failure
from harness.executing.timing import BACKWARD, FORWARD, Header, Tensors, digest
from harness.judging.remote import RemoteError, RunnerFailure
from harness.judging.subject import Subject
from harness.running.candidate_process import Limits, started

#: For each request.
_LIMITS = Limits()
_T = TypeVar("_T")

#: Of large cases, this many rounds are verified, which are drawn; of small ones, all.
_VERIFIED = 4
#: Processor time beyond what is usual is suspect above this part of it. It has steps of 0.01 s.
_PART, _STEPS = 0.25, 0.05
#: Digests may take this part of the block's time longer than here, and as long as a request on a busy machine.
_LATE, _REQUEST = 0.5, 0.002
#: The least part of the time of a roofline that is believed.
_OF_ROOFLINE = 0.9


class Process(Protocol):
    """A process that answers requests for blocks."""

    def ask(self, header: Header, tensors: Tensors, *, seconds: float) -> tuple[Header, Tensors]:
        """The reply within that time. Raises RunnerFailure."""

    def cpu_seconds(self) -> float:
        """Processor time that it has taken, with everything that it started."""


def _to(process: Process) -> Ask:
    """Requests to another process. Raises RemoteError for an exception there, and RunnerFailure."""

    def ask(header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        answer, found = process.ask(header, tensors, seconds=_LIMITS.seconds)
        error = answer.get("error")
        if isinstance(error, dict):
            raise RemoteError(str(error.get("kind")), str(error.get("text")))
        return answer, found

    return ask


def asking_nobody(until: ExitStack) -> Ask:
    """Requests to a process like a candidate's that has imported none; it ends with `until`."""
    process = started("nobody", _LIMITS)
    until.callback(process.stop)
    return _to(process)


def asking_backend(found: FoundBackend, operator: str, device: str, until: ExitStack) -> Ask:
    """Requests to a process like a candidate's that has imported a backend; it ends with `until`.

    It is trusted, so it has this process's environment and its libraries. Raises RemoteError and RunnerFailure.
    """
    process = started(f"backend {found.name}", _LIMITS, environment=os.environ)
    until.callback(process.stop)
    ask = _to(process)
    package = found.package
    header = {
        "do": "import",
        "where": "harness.discovery",
        "attribute": "load_function_of",
        "given": [package.__name__, str(Path(package.__path__[0])), operator, device],
        "device": "cuda" if device == CUDA else "cpu",
        "path": [str(Path.cwd()), *sys.path],
    }
    ask(header, {})
    return ask


class CandidateTimer(BlockTimer):
    """Times one phase of a candidate, and finds out whether the times can be believed."""

    def __init__(self, ring: Ring, phase: str, subject: Subject, process: Process, empty: Ask, rounds: int) -> None:
        super().__init__(ring, phase, _to(process), empty)
        self._subject, self._process = subject, process
        small = correctness.is_small(subject, ring.case)
        self._verified = set(range(rounds) if small else ring.draw.sample(range(rounds), min(_VERIFIED, rounds)))
        self.backend = subject.backend
        #: Status and reason if the row must not be shown.
        self.trouble: tuple[str, str] | None = None
        self._round = 0
        self._prepared: list[float] = []
        self._timed: list[float] = []
        self._committed: list[float] = []
        self._digesting = 0.0
        #: Processor time in blocks, and between them; and when the last block ended.
        self._busy, self._idle = 0.0, 0.0
        self._before = 0.0
        #: Processor time that this process takes for the same new inputs.
        self._own_cpu = 0.0

    def begin(self, seconds: float, longest: float) -> None:
        """As for `BlockTimer`. Raises Failure."""
        self._try(lambda: super(CandidateTimer, self).begin(seconds, longest))
        self._before = self._process.cpu_seconds()

    def sample(self) -> float:
        """One sample, verified; 0 after the first trouble."""
        if self.trouble is None:
            try:
                return self._try(self._sample)
            except Failure as error:
                self.trouble = WRONG, f"wrong while timed: {error}"
        return 0.0

    def _try(self, step: Callable[[], _T]) -> _T:
        try:
            return step()
        except RemoteError as error:
            text = (str(error).strip().splitlines() or [""])[0]
            raise Failure(f"a call raised {error.kind}: {text}") from error
        except RunnerFailure as error:
            raise Failure(f"its process {error}") from error

    def _sample(self) -> float:
        seconds = sum(self._verified_block() for _ in range(self.blocks)) / self.blocks
        self._round += 1
        return seconds

    def _verified_block(self) -> float:
        began = self._process.cpu_seconds()
        self._idle += began - self._before
        plan = self.ring.plan(self.calls)
        self._prepared.append(self.ring.refresh(self.ask, plan, self.phase))
        empty = [self._empty(plan)] if self.ring.draw.random() < 0.5 else []
        took = self.block(plan)
        clock = time.perf_counter()
        answer, _ = self.ask({"do": "commit"}, {})
        self._committed.append(time.perf_counter() - clock)
        self._timed.append(took)
        self._busy += self._process.cpu_seconds() - began
        digests = self._digests(plan, answer)
        drawn = sorted({plan.copied[0], self.ring.draw.randrange(self.calls)}) if self._round in self._verified else []
        _, found = self.ask({"do": "reveal", "calls": drawn}, {})
        # What is taken from here to the next request is taken without a request.
        self._before = self._process.cpu_seconds()
        for number in drawn:
            self._verify(plan, number, digests[number], found)
        # This process does the same now: nothing is asked of the candidate meanwhile.
        own = time.process_time()
        self.ring.refresh(self.ring.own, plan, FORWARD)
        self._own_cpu += time.process_time() - own
        return max(took - (empty or [self._empty(plan)])[0], LEAST) / self.calls

    def _digests(self, plan: Plan, answer: Header) -> list[list[int | None]]:
        """The digest of each result of each call; those of the copies, which were made at once, must be the same."""
        found = answer.get("digests")
        results = correctness.results_of(self._subject.operator, self.phase)
        if (
            not isinstance(found, list)
            or len(found) != self.calls + len(plan.copied)
            or any(not isinstance(digests, list) or len(digests) != results for digests in found)
        ):
            raise Failure(f"its process sent no digests of {results} results of each call")
        for number, copied in zip(sorted(plan.copied), found[self.calls :], strict=True):
            if copied != found[number]:
                raise Failure(f"{self._ordinal(number)} had another result when it returned than after its block")
        return found[: self.calls]

    def _verify(self, plan: Plan, number: int, digests: list[int | None], found: Tensors) -> None:
        """Hold the results of a call against their digests and against the contract."""
        results = [found.get(f"{number} {k}") for k in range(len(digests))]
        dtypes = correctness.dtypes_of(self._subject.operator, self.phase, self._subject.dtype)
        for y, dtype in zip(results, dtypes, strict=True):
            if y is not None and y.dtype != dtype:
                raise Failure(f"{self._ordinal(number)} had a result of {y.dtype}, but should have {dtype}")
        if [digest(y) for y in results] != digests:
            raise Failure(f"{self._ordinal(number)} had another result after its block than later")
        self._digest_time(results)
        call = self.ring.call(plan, number, self.phase)
        if not correctness.is_small(self._subject, self.ring.case):  # in float64, which takes long on a CPU
            call = call.of(tensor.to(self.ring.device) for tensor in call.tensors)
            results = [y if y is None else y.to(self.ring.device) for y in results]
        try:
            correctness.check_results(self._subject, self.ring.case, call, results, self.phase)
        except Failure as error:
            raise Failure(f"{self._ordinal(number)}: {error}") from error

    def _ordinal(self, number: int) -> str:
        return f"call {number + 1} of a block of {self.calls}"

    def _digest_time(self, results: list[Tensor | None]) -> None:
        """How long this process takes for digests of such results: the least of some."""
        placed = [y if y is None else y.to(self.ring.device) for y in results]
        began = time.perf_counter()
        for y in placed:
            digest(y)
        took = time.perf_counter() - began
        self._digesting = min(self._digesting or took, took)

    def suspicion(self, least: float, seconds: float) -> str:
        """Why the times cannot be believed, in a sentence; empty if they can. `least` is the time of the roofline."""
        timed, total = statistics.median(self._timed), sum(self._timed)
        if seconds < _OF_ROOFLINE * least:
            return (
                f"a call took {seconds:.3g} s, but must take at least {_OF_ROOFLINE * least:.3g} s at the rates that "
                "this machine reached in the same run"
            )
        late, own = statistics.median(self._committed), self._digesting * self.calls
        # Other programs hold up some of few replies, so the lower end of the median's interval is what counts.
        excess = [there - _LATE * block for there, block in zip(self._committed, self._timed, strict=True)]
        if interval(excess)["low"] > own + _REQUEST:
            return (
                f"work went on after the reply: digests of the results took {late:.3g} s, which take {own:.3g} s, "
                f"after a block of {timed:.3g} s"
            )
        if self._idle > _PART * total + _STEPS:
            return (
                f"work went on after the reply: {self._idle:.3g} s of processor time while nothing was asked, beside "
                f"{total:.3g} s that were timed"
            )
        threads = self.ring.threads or 0
        spent = sum(self._prepared) + total + sum(self._committed)
        if threads and self._busy > (1 + _PART) * threads * spent + _STEPS:
            return (
                f"more processors were used than the row says: {self._busy:.3g} s of processor time in {spent:.3g} s "
                f"of {threads} thread{'s' if threads > 1 else ''}"
            )
        # The forward of a backward is no part of the block, and is not known here.
        usual = self._own_cpu + len(self._timed) * own * threads + threads * total
        if threads and self.phase != BACKWARD and self._busy > (1 + _PART) * usual + _STEPS:
            return (
                f"work was done outside of the timed part: {self._busy:.3g} s of processor time, where new inputs, "
                f"digests and {total:.3g} s that were timed take {usual:.3g} s"
            )
        return ""
