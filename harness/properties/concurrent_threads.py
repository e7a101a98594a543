"""Four threads call at the same time, each with its own values, and each gets its own results.

DataParallel, servers and Hogwild training call an operator from several threads, and PyTorch releases the interpreter's
lock inside every operation. A scratch buffer or a saved tensor that calls share is then overwritten by another thread.
All threads use one size, so that a buffer shared by size collides. They wait for each other before every forward and
every backward. So all forwards have happened before the first backward, and state that belongs to the implementation
instead of the call is wrong in every run, not in one of a thousand.

State that is shared inside one forward is overwritten only if the threads overlap there, and operations of a
microsecond never do. So in the first rounds each thread sleeps for a short random time before some of its calls, which
produces many orders of the threads' operations. The later rounds have no sleeps. They add sizes whose work takes longer
than the threads take to meet: those are for compiled code, in which Python's profiler cannot insert sleeps. The same
code shares state in float64 as in float32, and in both half types, so without a GPU those sizes run in one
dtype of each pair.

A right implementation passes whatever the order of the threads is. Only the limit for hanging threads depends on time.
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
from harness.report.levels import SAFE

THREADS = 4

#: Rounds of forward and backward with sleeps, and without. With sleeps, one of three other threads overwrites shared
#: state between two operations in nearly every round, so a few rounds are enough.
ROUNDS = 4

#: The longest sleep in seconds: about the time to wake another thread.
SLEEP = 1e-4

#: Seconds after which threads that have not returned count as hanging; a round takes milliseconds.
LIMIT = 60.0


@dataclass
class _Thread:
    """The input and the results of one thread. Results are compared later, in the main thread."""

    scenario: Scenario
    slowly: bool
    found: list[tuple[tuple[Tensor, ...], dict[str, Tensor]]] = field(default_factory=list)
    error: BaseException | None = None


def check(subject: Subject) -> dict[str, Any]:
    """All rounds; then compare every result of every thread with the oracle of its values."""
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
    for thread in threads:  # alone first: an error without other threads is not an error of threading
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
    except BaseException as error:  # reported by the main thread
        thread.error = error
        barrier.abort()


@contextmanager
def _slowly(seed: int) -> Iterator[None]:
    """Sleep for a random time before one in four of the calls in this thread that a profiler sees.

    A TorchDispatchMode would see the operations themselves, but with torch 2.13 several threads with such modes crash
    the process now and then.
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


PROPERTY = Property(
    "concurrent-threads",
    "threads that call at the same time each get their own results",
    check,
    view=INTEGRATION,
    level=SAFE,
)
