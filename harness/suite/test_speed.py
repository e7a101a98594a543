"""What each backend costs at the tutorial's sizes: forward alone, and with backward; right before and after timing."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from backends.base import CUDA, CUDA_EMULATED
from harness.errors import Unavailable
from harness.options import Slot
from harness.parity import Tally
from harness.scenario import Scenario
from harness.scenarios import tagged
from harness.subject import Subject
from harness.timing import check_timer, synchroniser, timer

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


def _work(subject: Subject, scenario: Scenario, phase: str) -> Callable[[], None]:
    """One call of the phase, finished when it returns."""
    call = subject.realise(scenario)
    synchronise = synchroniser(subject.device)

    def forward() -> None:
        with torch.no_grad():
            subject.function(*call.inputs)
        synchronise()

    def forward_and_backward() -> None:
        outputs = subject.function(*call.inputs)
        torch.autograd.grad(outputs, call.inputs, call.cotangents)
        synchronise()

    return forward if phase == "forward" else forward_and_backward


@pytest.mark.parametrize("phase", ["forward", "forward+backward"])
def test_speed(slot: Slot, phase: str, benchmark: BenchmarkFixture) -> None:
    if slot.device == CUDA_EMULATED:
        pytest.skip("emulation runs a GPU's threads one after the other: its time says nothing")
    try:
        subject = slot.subject()
        subject = subject.in_form(subject.operator)
    except Unavailable as why:
        pytest.skip(f"not-run: {why}")
    scenario = Scenario.of(tagged(subject.operator, "benchmark")[0])
    benchmark.group = f"{subject.operator.name} {phase} {subject.device} {subject.dtype_name} {scenario.name}"
    Tally(subject).run(scenario)
    benchmark(_work(subject, scenario, phase))
    Tally(subject).run(scenario)
