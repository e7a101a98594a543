"""Make a bench record: every selected backend at every benchmark case, in all phases, by every clock."""

from __future__ import annotations

import contextlib
import random
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from backends.base import CPU, CUDA, Peer
from harness.bench import correctness, products, rounds
from harness.bench.blocks import Ask, BlockTimer, Ring, too_slow
from harness.bench.foreign import CandidateTimer, asking_backend, asking_nobody
from harness.bench.products import FLOOR, PRODUCTS_ALONE, is_backend
from harness.bench.record import KIND, NOT_TIMED, SCHEMA, SUSPECT, WRONG, Row, find
from harness.candidate import Candidate
from harness.discovery import FoundBackend
from harness.errors import Broken, Failure, HarnessError, Unavailable
from harness.judging.scenario import Scenario, realise
from harness.judging.subject import Subject, one_line
from harness.measuring import ceilings, clocks, memory, work
from harness.measuring.processors import pinned
from harness.measuring.work import Work
from harness.running import environment
from harness.running.candidate_process import CandidateProcess, Limits
from harness.running.selection import Slot
from spec.contract import PHASES, Case, Cost, Operator

#: Every row is compared with this backend, if it is there, and with peers.
REFERENCES = ("python-autograd", "torch-compile", "torch-native", PRODUCTS_ALONE, FLOOR)

#: What is timed by requests has samples that are so many times as long: a request takes about 0.1 ms, on CUDA 0.2 ms.
_LONGER = {CPU: 10, CUDA: 25}
_ON_THE_GPU = "a graph is captured and timed in one process, so a candidate is timed by its throughput alone"

Say = Callable[[str], None]
Keep = Callable[[dict[str, Any]], None]
_Ring = list[tuple[work.Inputs, work.Inputs]]


@dataclass(frozen=True)
class Settings:
    """How much is measured. `block_seconds` is the duration of a sample; calls slower than `longest` are not timed."""

    rounds: int = 30
    block_seconds: float = 0.002
    longest: float = 0.1
    threads: tuple[int, ...] = (1, 2)
    cases: tuple[str, ...] = ()
    phases: tuple[str, ...] = PHASES
    seed: int = 0


def measure(slots: list[Slot], settings: Settings, say: Say, keep: Keep = lambda _record: None) -> dict[str, Any]:
    """The record. Wrong, absent or slow backends are listed in `missing`, with the reason; the others are measured.

    `keep` gets the record so far after each operator, device and dtype, so that a long run that is ended early loses
    only its current group.
    """
    bench = _Bench(settings, say)
    record = {
        "kind": KIND,
        "schema": SCHEMA,
        "environment": environment.describe(),
        "settings": {"rounds": settings.rounds, "block_seconds": settings.block_seconds, "seed": settings.seed},
        "ceilings": bench.ceilings,
        "rows": bench.rows,
        "missing": bench.missing,
    }
    for group in _grouped(slots):
        for threads in settings.threads if group[0].device == CPU else (None,):
            # A process has the threads and the processors of its time of start.
            with _threads(threads), contextlib.ExitStack() as bench.processes:
                bench.measure(group, threads)
        keep(record)
    return record


def _grouped(slots: list[Slot]) -> list[list[Slot]]:
    """The slots that are timed together: one operator, device and dtype. Emulation is not timed."""
    found: dict[tuple[str, str, torch.dtype], list[Slot]] = {}
    for slot in slots:
        if slot.device in (CPU, CUDA):
            found.setdefault((slot.operator.name, slot.device, slot.dtype), []).append(slot)
    return list(found.values())


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Use that many threads, on as many processors; None changes nothing."""
    if threads is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with pinned(threads):
            yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True)
class _Place:
    """The common fields of works that are timed together; None means all values of the field."""

    operator: Operator
    device: str
    dtype: torch.dtype
    threads: int | None
    case: Case | None = None
    phase: str | None = None
    clock: str | None = None

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def row(self, backend: str) -> Row:
        """The fields that identify a row, or an entry of `missing`."""
        return {
            "operator": self.operator.name,
            "backend": backend,
            "device": self.device,
            "dtype": self.dtype_name,
            "case": self.case.name if self.case else None,
            "phase": self.phase,
            "clock": self.clock,
            "threads": self.threads,
        }

    def in_words(self) -> str:
        case, threads = self.case.name if self.case else "", f", threads: {self.threads}" if self.threads else ""
        return f"{self.operator.name} {case} {self.device} {self.dtype_name}{threads}"


class _Bench:
    """What has been measured so far."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self.settings, self.say = settings, say
        self.draw = random.Random(settings.seed)
        self.ceilings: list[Row] = []
        self.rows: list[Row] = []
        self.missing: list[Row] = []
        #: Ends the processes of the candidates, and of what is timed beside them.
        self.processes = contextlib.ExitStack()
        #: Processes like theirs with a backend, by its name; without any function, by "".
        self.beside: dict[str, Ask] = {}

    def measure(self, slots: list[Slot], threads: int | None) -> None:
        """All cases of one operator, device and dtype."""
        here = _Place(slots[0].operator, slots[0].device, slots[0].dtype, threads)
        self.beside = {}
        subjects, peers = [], []
        found = {slot.backend: slot.source for slot in slots if isinstance(slot.source, FoundBackend)}
        foreign: dict[str, CandidateProcess] = {}
        for slot in slots:
            if isinstance(slot.source, FoundBackend) and here.operator.name in slot.source.backend.beside:
                peers.append(slot.source.backend.beside[here.operator.name])
            try:
                subject, process = self._subject(slot)
            except (Unavailable, Broken) as error:
                self._miss(here, slot.backend, str(error))
                continue
            subjects.append(subject.in_form(slot.operator))
            if process is not None:
                foreign[slot.backend] = process
        for case in here.operator.cases:
            if "benchmark" in case.tags and case.name in (self.settings.cases or (case.name,)):
                place = replace(here, case=case)
                self.say(place.in_words())
                self._case(place, case, subjects, peers, foreign, found)

    def _subject(self, slot: Slot) -> tuple[Subject, CandidateProcess | None]:
        """The implementation; with the process of a candidate, which this process does not import."""
        if not isinstance(slot.source, Candidate):
            return slot.subject(), None
        slot.require_device()
        process = CandidateProcess(slot.source, slot.device, Limits())
        self.processes.callback(process.stop)
        process.declared()
        function, place = process.function, (slot.operator, slot.backend, slot.device, slot.dtype)
        return Subject(*place, function, source=slot.source.text, remote=function), process

    def _case(
        self,
        here: _Place,
        case: Case,
        subjects: list[Subject],
        peers: list[Peer],
        foreign: Mapping[str, CandidateProcess],
        found: Mapping[str, FoundBackend],
    ) -> None:
        right = [subject for subject in subjects if self._is_right(here, subject, case, "before")]
        # This process has a copy of the ring too.
        ring = Ring(here.operator, case, here.dtype, here.device, here.threads, len(right) + 1) if foreign else None
        eager = clocks.WALL if ring is None or here.device != CUDA else clocks.THROUGHPUT
        inputs = ring.pairs() if ring else _ring(here.operator, case, here.device, here.dtype)
        begin = len(self.rows)
        for clock in (eager, clocks.GRAPH) if here.device == CUDA else (eager,):
            for phase in self.settings.phases:
                place = replace(here, phase=phase, clock=clock)
                in_blocks = right if ring is not None and clock == eager else []
                if ring is not None and not in_blocks:
                    for name in foreign:
                        self._miss(place, name, _ON_THE_GPU)
                native = [subject for subject in right if not in_blocks and subject.backend not in foreign]
                with clocks.preparing(clock, here.device):
                    works = self._prepared(place, case, inputs, native, peers)
                timers = self._timers(place, ring, in_blocks, foreign, found) if ring is not None else {}
                if any(map(is_backend, (*works, *timers))):
                    self._together(place, case, works, timers)
        wrong = {subject.backend for subject in right if not self._is_right(here, subject, case, "after")}
        self.rows[begin:] = [row for row in self.rows[begin:] if row["backend"] not in wrong]

    def _is_right(self, here: _Place, subject: Subject, case: Case, when: str) -> bool:
        try:
            correctness.check(subject, case)
        except Failure as error:
            self._miss(here, subject.backend, f"wrong {when} timing: {error}", WRONG)
            return False
        return True

    def _timers(
        self,
        here: _Place,
        ring: Ring,
        subjects: list[Subject],
        foreign: Mapping[str, CandidateProcess],
        backends: Mapping[str, FoundBackend],
    ) -> dict[str, BlockTimer]:
        """Timers of candidates, and of backends beside them: each makes blocks of calls in a process of its own."""
        found: dict[str, BlockTimer] = {}
        phase = here.phase
        assert phase is not None
        for subject in subjects:
            timer: BlockTimer
            try:
                nobody = self._beside("", asking_nobody)
                if subject.backend in foreign:
                    process = foreign[subject.backend]
                    timer = CandidateTimer(ring, phase, subject, process, nobody, self.settings.rounds)
                else:
                    started = partial(asking_backend, backends[subject.backend], here.operator.name, here.device)
                    ask = self._beside(subject.backend, started)
                    timer = BlockTimer(ring, phase, ask, nobody)
                timer.begin(_LONGER[here.device] * self.settings.block_seconds, self.settings.longest)
            except Failure as error:
                self._miss(here, subject.backend, f"wrong while timed: {error}", WRONG)
            except (HarnessError, RuntimeError) as error:
                self._miss(here, subject.backend, str(error) if isinstance(error, HarnessError) else one_line(error))
            else:
                found[subject.backend] = timer
        return found

    def _beside(self, name: str, start: Callable[[contextlib.ExitStack], Ask]) -> Ask:
        if name not in self.beside:
            self.beside[name] = start(self.processes)
        return self.beside[name]

    def _prepared(
        self, here: _Place, case: Case, inputs: _Ring, subjects: list[Subject], peers: list[Peer]
    ) -> dict[str, Work]:
        """The work of each backend, peer and reference that this clock can time."""
        phase, device = here.phase, here.device
        assert phase is not None
        assert here.clock is not None
        found: dict[str, Work] = {}
        makers: dict[str, Callable[[], Work | None]] = {
            subject.backend: partial(work.prepare, subject.function, inputs, phase, device) for subject in subjects
        }
        for peer in peers:
            own = [(peer.leaves(given), cotangents) for given, cotangents in inputs]
            makers[peer.name] = partial(work.prepare, peer.function, own, phase, device)
        between = here.operator.cost(phase, case.sizes, here.dtype.itemsize).between
        makers[PRODUCTS_ALONE] = partial(products.prepare, here.operator, inputs, phase, device)
        makers[FLOOR] = lambda: products.prepare_floor(found.get(PRODUCTS_ALONE), between, device)
        for backend, make in makers.items():
            try:
                made = make()
                if made is not None:
                    self._try(made, here.clock)
                    found[backend] = made
            except (HarnessError, clocks.NotCapturable, RuntimeError) as error:
                self._miss(here, backend, str(error) if isinstance(error, HarnessError) else one_line(error))
        return found

    def _try(self, made: Work, clock: str) -> None:
        """Call it once. Raises Unavailable if that takes too long, NotCapturable if it cannot be captured."""
        made.once()
        took, longest = clocks.clock(clock)(made, 1), self.settings.longest
        if took > longest:
            raise too_slow(took, longest)

    def _together(self, here: _Place, case: Case, works: dict[str, Work], timers: Mapping[str, BlockTimer]) -> None:
        assert here.phase is not None
        assert here.clock is not None
        clock, block = clocks.clock(here.clock), self.settings.block_seconds
        if here.clock == clocks.THROUGHPUT:
            block *= _LONGER[here.device]
        own = {name: rounds.WorkSampler(made, clock, block) for name, made in works.items()}
        taken = rounds.take({**timers, **own}, self.settings.rounds, self.draw)
        cost = here.operator.cost(here.phase, case.sizes, here.dtype.itemsize)
        ceiling = self._ceiling(here)
        least, bound = ceilings.roofline(ceiling["copies"], ceiling["flops_per_second"], cost.bytes, cost.flops)
        troubled = []
        for backend, timer in timers.items():
            if isinstance(timer, CandidateTimer) and (trouble := self._trouble(here, timer, cost, taken, timers)):
                status, reason = trouble
                self._miss(here, backend, reason, status)
                troubled.append(backend)
        for backend in troubled:
            del taken[backend]
        for backend, samples in taken.items():
            times = rounds.row_times(samples)
            fraction = rounds.rounded(least / times["seconds"]["median"])
            self.rows.append(
                {
                    **here.row(backend),
                    "sizes": dict(case.sizes),
                    **times,
                    "ratios": {
                        name: rounds.ratio(other, samples)
                        for name, other in taken.items()
                        if name in REFERENCES or not is_backend(name)
                    },
                    **(self._peak(works[backend]) if backend in works else {}),
                    "bytes": cost.bytes,
                    "flops": cost.flops,
                    "roofline": {"seconds": rounds.rounded(least), "bound": bound, "fraction": fraction},
                }
            )

    def _trouble(
        self,
        here: _Place,
        timer: CandidateTimer,
        cost: Cost,
        taken: Mapping[str, list[float]],
        timers: Mapping[str, BlockTimer],
    ) -> tuple[str, str] | None:
        """Status and reason if a candidate's times must not be shown."""
        if timer.trouble is not None:
            return timer.trouble
        # Half types may be computed in float32, so the faster rate of the two is the limit.
        dtypes = (here.dtype, torch.float32) if here.dtype.itemsize == 2 else (here.dtype,)
        least = ceilings.floor([self._ceiling(replace(here, dtype=x)) for x in dtypes], cost.bytes, cost.flops)
        # Where code of this project beats the rates too, these were measured in a bad moment.
        own = [name for name in taken if not isinstance(timers.get(name), CandidateTimer)]
        least = min([least, *(statistics.median(taken[name]) for name in own)])
        reason = timer.suspicion(least, statistics.median(taken[timer.backend]))
        return (SUSPECT, reason) if reason else None

    def _peak(self, made: Work) -> Row:
        """On CUDA, the peak memory of a call, as counted by the allocator."""
        return {"peak_bytes": memory.peak_bytes(made)} if made.device == CUDA else {}

    def _ceiling(self, here: _Place) -> Row:
        about = {"device": here.device, "dtype": here.dtype_name, "threads": here.threads}
        found = find(self.ceilings, **about)
        if found is None:
            self.say(f"ceilings: {about}")
            found = {**about, **ceilings.measure(here.device, here.dtype)}
            self.ceilings.append(found)
        return found

    def _miss(self, here: _Place, backend: str, reason: str, status: str = NOT_TIMED) -> None:
        self.missing.append({**here.row(backend), "status": status, "reason": reason})


def _ring(operator: Operator, case: Case, device: str, dtype: torch.dtype) -> _Ring:
    """(inputs, cotangents) with ordinary values, each with a seed of its own."""
    first = realise(operator, Scenario.of(case), dtype, device)
    size = sum(t.numel() * t.itemsize for t in (*first.inputs, *first.cotangents) if t is not None)
    seeds = range(1, work.ring_length(size, device))
    calls = [first, *(realise(operator, Scenario.of(case, seed=seed), dtype, device) for seed in seeds)]
    return [(call.inputs, tuple(g for g in call.cotangents if g is not None)) for call in calls]
