"""Take the samples: ABBA quadruples of blocks of calls, over several launches of the workers.

Each launch has three workers: base, base again, and head. A round times three comparisons in a new random order, each
as a quadruple ABBA or BAAB, also chosen at random:

    head      base against head: the question
    same      base against itself in another process: must not alarm
    planted   base against itself with a tenth more calls in each block: must alarm
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.bench.resampling import Launches
from harness.errors import Unavailable
from harness.gate.matching import name
from harness.gate.statistics import abba
from harness.gate.workers import SuspectTimes, Worker, WorkerFailed, workers

QUESTION, SAME, PLANTED = KINDS = ("head", "same", "planted")
#: For each of this many calls a planted block has one call more. Real calls test the whole measurement.
TENTH = 10

Quadruple = tuple[float, float, float, float]
Say = Callable[[str], None]


@dataclass(frozen=True)
class SamplingPlan:
    """How much is sampled: `pairs` quadruples in each launch, in blocks of `seconds`.

    A block has at least TENTH calls, so that a tenth can be added to it; a benchmark with blocks longer than `longest`
    is left out, with that reason.
    """

    launches: int = 5
    pairs: int = 20
    seconds: float = 0.005
    longest: float = 0.1
    threads: int = 1
    seed: int = 0


@dataclass
class Samples:
    """All samples of one benchmark. Times are seconds of one call.

    `quadruples[kind]` are (A, B, B, A) times, launch by launch; a planted B counts as one call. `memory` are peak bytes
    of (base, head). `problem` is why there are no samples, `unavailable` whether the machine is the reason, `suspect`
    whether times were reported that cannot be, `of_base` whether base is the reason.
    """

    benchmark: dict[str, Any]
    quadruples: dict[str, list[list[Quadruple]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    memory: tuple[int, int] | None = None
    problem: str = ""
    unavailable: bool = False
    suspect: bool = False
    of_base: bool = False

    def launches(self, kind: str) -> Launches:
        """The pairs of a comparison."""
        return [[abba(*quadruple) for quadruple in launch] for launch in self.quadruples[kind]]


def sample(
    base: Path, head: Path, benchmarks: Sequence[dict[str, Any]], plan: SamplingPlan, say: Say
) -> dict[str, Samples]:
    """Samples of each benchmark by its name. An error in a tree becomes its `problem`; the others continue."""
    found = {name(benchmark): Samples(benchmark) for benchmark in benchmarks}
    draw = random.Random(plan.seed)
    for launch in range(plan.launches):
        say(f"launch {launch + 1} of {plan.launches}: {len(benchmarks)} benchmarks")
        with workers([base, base, head], plan.threads) as (first, second, last):
            # Another order in each launch, so that effects of one benchmark on the next average out.
            for samples in draw.sample(list(found.values()), len(found)):
                if not samples.problem:
                    _one_launch(samples, first, second, last, plan, draw)
    return found


def _one_launch(
    samples: Samples, first: Worker, second: Worker, last: Worker, plan: SamplingPlan, draw: random.Random
) -> None:
    try:
        calls = _prepared(first, samples.benchmark, plan)
    except Unavailable as error:
        samples.problem, samples.unavailable = str(error), True
        return
    except WorkerFailed as error:
        samples.problem, samples.of_base = f"base cannot be measured: {error}", True
        return
    try:
        for worker in (second, last):
            _prepared(worker, samples.benchmark, plan)
        if samples.memory is None:
            samples.memory = (first.ask("memory"), last.ask("memory"))
        sides = {
            QUESTION: (last, calls),
            SAME: (second, calls),
            PLANTED: (second, calls + calls // TENTH),
        }
        taken: dict[str, list[Quadruple]] = {kind: [] for kind in KINDS}
        for _ in range(plan.pairs):
            for kind in draw.sample(KINDS, len(KINDS)):
                taken[kind].append(quadruple((first, calls), sides[kind], calls, draw))
        for worker in (first, second, last):
            worker.hold_times(samples.benchmark["device"])
    except SuspectTimes as error:
        samples.problem, samples.suspect = str(error), True
    except (Unavailable, WorkerFailed) as error:  # base can
        samples.problem = f"base can be measured, but head cannot: {error}"
    else:
        for kind, quadruples in taken.items():
            samples.quadruples[kind].append(quadruples)


def _prepared(worker: Worker, benchmark: dict[str, Any], plan: SamplingPlan) -> int:
    """Prepare and warm up; returns the number of calls of a block. Raises Unavailable if it would take too long."""
    worker.ask("prepare", benchmark=benchmark)
    least = worker.ask("time", calls=TENTH)
    if least > plan.longest:
        raise Unavailable(
            f"{TENTH} calls took {least:.3g} s, and a block may take {plan.longest:g} s: raise --longest to have it"
        )
    return int(worker.ask("calls", seconds=plan.seconds, multiple=TENTH))


def quadruple(a: tuple[Worker, int], b: tuple[Worker, int], calls: int, draw: random.Random) -> Quadruple:
    """(A, B, B, A) times of one call, timed as ABBA or as BAAB. A block of a side has its own number of calls, and its
    time is divided by `calls`."""

    def timed(side: tuple[Worker, int]) -> float:
        worker, own = side
        return float(worker.ask("time", calls=own)) / calls

    if draw.random() < 0.5:
        return timed(a), timed(b), timed(b), timed(a)
    b1, a1, a2, b2 = timed(b), timed(a), timed(a), timed(b)
    return a1, b1, b2, a2
