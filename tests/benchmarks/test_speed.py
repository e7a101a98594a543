"""Backends under pytest-benchmark, for its histograms, profiles and saved runs; each is checked before and after.

A group holds comparable benchmarks: a phase of one case on one device in one dtype. For comparisons with intervals use
`nox -s bench`, which times backends together, and `nox -s gate`, which compares with another commit.
"""

from __future__ import annotations

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from backends.base import CUDA, SIMULATED
from harness.bench import correctness
from harness.errors import Unavailable
from harness.judging.scenario import Scenario
from harness.judging.scenarios import tagged
from harness.measuring import work
from harness.pytest_plugin.plugin import selected
from harness.running.selection import Slot
from spec.contract import PHASES, Case

#: Calls before those that are timed. pytest-benchmark plans its rounds by the first call: of one that starts autograd's
#: threads it makes five in place of a thousand.
WARM_UP = 3


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every benchmark case of every selected slot; without emulation, whose time says nothing about a GPU."""
    slots = [slot for slot in selected(metafunc.config) if slot.device not in SIMULATED]
    places = [(slot, case) for slot in slots for case in tagged(slot.operator, "benchmark")]
    ids = [f"{slot.id}-{case.name}" for slot, case in places]
    metafunc.parametrize(("place", "case"), places, ids=ids)


@pytest.mark.parametrize("phase", PHASES)
def test_speed(place: Slot, case: Case, phase: str, benchmark: BenchmarkFixture) -> None:
    try:
        subject = place.subject()
        subject = subject.in_form(subject.operator)
    except Unavailable as why:
        pytest.skip(f"not-run: {why}")
    benchmark.group = f"{subject.operator.name} {case.name} {phase} {subject.device} {subject.dtype_name}"
    correctness.check(subject, case)
    call = subject.realise(Scenario.of(case))
    cotangents = tuple(g for g in call.cotangents if g is not None)
    timed = work.prepare(subject.function, [(call.inputs, cotangents)], phase, subject.device)

    def once() -> None:
        timed.once()
        if subject.device == CUDA:
            torch.cuda.synchronize()

    for _ in range(WARM_UP):
        once()
    benchmark(once)
    correctness.check(subject, case)
