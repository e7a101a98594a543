"""Four threads call at once, each with values of its own, and each gets its own results.

DataParallel, servers and Hogwild training call an operator from several threads, and PyTorch lets go of the
interpreter's lock inside every operation. A scratch buffer or a saved tensor that calls share is then overwritten by a
neighbour. All threads use one size, so that what is shared by size collides, and wait for each other before every
forward and every backward: between them everybody's forward has happened, so that state which belongs to the
implementation and not to the call is wrong in every run, not in one of a thousand.

What is shared inside one forward is met by a neighbour only if the threads overlap there, and operations of a
microsecond never do. So in the first rounds each thread sleeps a little, a random while, before every few of its calls,
so that many orders of all threads' operations come about. In the rounds after those nothing is slowed down, and sizes
come too where the work itself takes longer than the threads take to meet: those are for compiled code, which no
profiler of Python's can slow down between two of its lines. What is shared is shared by the same code in float64 as in
float32, and in both half types: without a GPU those sizes are asked for in one of each.

A right implementation passes whatever the threads' order is: nothing here depends on time but the limit on hanging.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest, tagged
from harness.judging.subject import Subject
from harness.judging.tally import Tally

THREADS = 4

#: Rounds of forward and backward with sleeps, and without. With sleeps, what is written before one operation and read
#: after it is overwritten in between by one of three neighbours in nearly every round; a few are enough.
ROUNDS = 4

#: The longest sleep in seconds: about what it takes to wake another thread.
SLEEP = 1e-4

#: Seconds after which threads that do not come back hang; a round takes milliseconds.
LIMIT = 60.0


@dataclass
class _Thread:
    """What one thread is given and what it finds. Results are compared later, in the main thread."""

    scenario: Scenario
    slowly: bool
    found: list[tuple[tuple[Tensor, ...], dict[str, Tensor]]] = field(default_factory=list)
    error: BaseException | None = None


def check(subject: Subject) -> dict[str, Any]:
    """All rounds, then every result of every thread against the oracle of its values."""
    tally = Tally(subject)
    scenarios = [smallest(subject.operator)]
    if subject.device == CUDA or subject.dtype in (torch.float32, torch.bfloat16):
        scenarios += [Scenario.of(case) for case in tagged(subject.operator, "benchmark")[:1]]
    _run(tally, scenarios[0], slowly=True)
    for scenario in scenarios:
        _run(tally, scenario, slowly=False)
    return {**tally.figures(), "threads": THREADS, "rounds": ROUNDS * (1 + len(scenarios))}


def _run(tally: Tally, base: Scenario, slowly: bool) -> None:
    subject = tally.subject
    threads = [_Thread(replace(base, seed=seed), slowly) for seed in range(THREADS)]
    measures = [expected(subject.operator, thread.scenario, subject.dtype) for thread in threads]
    for thread in threads:  # alone first: what is wrong without company is not a matter of threads
        tally.run(thread.scenario)
    _at_once(subject, threads)
    for number, thread in enumerate(threads):
        if isinstance(thread.error, threading.BrokenBarrierError):
            continue  # another thread failed first
        if isinstance(thread.error, Failure):
            raise thread.error.prefixed(f"in thread {number} of {THREADS} that called at once: ") from thread.error
        if thread.error is not None:
            raise thread.error
    for number, (thread, measure) in enumerate(zip(threads, measures, strict=True)):
        for outputs, gradients in thread.found:
            tally.scenarios += 1
            try:
                tally.hold_all(thread.scenario, measure, outputs, gradients)
            except Failure as failure:
                raise failure.prefixed(
                    f"in thread {number} of {THREADS} that called at once, though right when it called alone: "
                ) from failure


def _at_once(subject: Subject, threads: list[_Thread]) -> None:
    barrier = threading.Barrier(len(threads))
    if subject.device == CUDA:
        torch.cuda.synchronize()
    workers = [
        threading.Thread(target=_work, args=(subject, thread, barrier), daemon=True, name=f"conformance-{number}")
        for number, thread in enumerate(threads)
    ]
    with _switching_often():
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(LIMIT)
    hanging = [worker.name for worker in workers if worker.is_alive()]
    if hanging:
        barrier.abort()
        raise Failure(
            f"{len(hanging)} of {THREADS} threads that called at once had not returned after {LIMIT:g} s, but should: "
            f"a deadlock [{threads[0].scenario.describe(subject.operator)}]"
        )
    if subject.device == CUDA:
        torch.cuda.synchronize()


def _work(subject: Subject, thread: _Thread, barrier: threading.Barrier) -> None:
    try:
        with _own_stream(subject):
            for number in range(ROUNDS):
                call = subject.realise(thread.scenario)
                barrier.wait(LIMIT)
                with _slowly(thread.scenario.seed * ROUNDS + number) if thread.slowly else nullcontext():
                    outputs = subject.outputs(call, thread.scenario)
                    barrier.wait(LIMIT)
                    gradients = subject.gradients(call, outputs, thread.scenario)
                thread.found.append((outputs, gradients))
    except BaseException as error:  # told by the main thread
        thread.error = error
        barrier.abort()


@contextmanager
def _slowly(seed: int) -> Iterator[None]:
    """Sleep a random while before one in four of the calls that this thread makes, as a profiler sees them.

    Not by a TorchDispatchMode, which would see the operations themselves: with torch 2.13 several threads with such
    modes crash the process now and then.
    """
    dice = random.Random(seed)

    def pause(_frame: Any, _event: str, _what: Any) -> None:
        if dice.random() < 1 / 4:
            time.sleep(dice.uniform(0, SLEEP))

    known = sys.getprofile()
    sys.setprofile(pause)
    try:
        yield
    finally:
        sys.setprofile(known)


def _own_stream(subject: Subject) -> AbstractContextManager[object]:
    """A CUDA stream for each thread, so that kernels overlap too."""
    if subject.device != CUDA:
        return nullcontext()
    return torch.cuda.stream(torch.cuda.Stream())  # type: ignore[no-untyped-call]


@contextmanager
def _switching_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


PROPERTY = Property("concurrent-threads", "threads that call at once get each its own results", check, view=INTEGRATION)
