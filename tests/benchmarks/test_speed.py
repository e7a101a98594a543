"""One backend at a time under pytest-benchmark, for its histograms and profiles; right before and after timing.

What is compared is timed together by `nox -s bench`, and held against another commit by `nox -s gate`.
"""

from functools import partial

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from backends.base import CUDA, CUDA_EMULATED
from harness.bench import correctness
from harness.errors import Unavailable
from harness.measuring import work
from harness.options import Slot
from harness.scenario import Scenario
from harness.scenarios import tagged
from harness.timing import check_timer, synchroniser, timer
from spec.contract import PHASES

_SLEEP_CYCLES = 20_000_000


@pytest.fixture(scope="session", autouse=True)
def _the_clock_waits_for_the_gpu() -> None:
    """Show the timer a kernel of known length, by the GPU's own clock, before it is believed."""
    if not torch.cuda.is_available():
        return
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    begin.record()
    torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call]
    end.record()
    torch.cuda.synchronize()
    sleep = partial(torch.cuda._sleep, _SLEEP_CYCLES)
    check_timer(timer(synchroniser(CUDA)), sleep, begin.elapsed_time(end) / 1e3)


@pytest.mark.parametrize("phase", PHASES)
def test_speed(slot: Slot, phase: str, benchmark: BenchmarkFixture) -> None:
    if slot.device == CUDA_EMULATED:
        pytest.skip("emulation runs a GPU's threads one after the other: its time says nothing")
    try:
        subject = slot.subject()
        subject = subject.in_form(subject.operator)
    except Unavailable as why:
        pytest.skip(f"not-run: {why}")
    case = tagged(subject.operator, "benchmark")[0]
    benchmark.group = f"{subject.operator.name} {phase} {subject.device} {subject.dtype_name} {case.name}"
    call = subject.realise(Scenario.of(case))
    cotangents = tuple(g for g in call.cotangents if g is not None)
    timed = work.prepare(subject.function, [(call.inputs, cotangents)], phase, subject.device)
    synchronise = synchroniser(subject.device)

    def once() -> None:
        timed.once()
        synchronise()

    correctness.check(subject, case)
    benchmark(once)
    correctness.check(subject, case)
