"""One batch: scenarios drawn from one seed, each called with every right implementation."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import prod
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from backends.base import CUDA_EMULATED
from harness import discovery
from harness.executing.runner import lost_device
from harness.judging import oracle
from harness.judging.drawn_scenarios import scenarios
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.running.selection import DTYPE_NAMES
from spec.contract import Operator
from tools.soak import calling
from tools.soak.calling import PASS, Result
from tools.soak.implementations import DEVICES, right
from tools.soak.scenario_json import to_json
from tools.soak.shrinking import shrunk

#: Scenarios of a batch before the repeated ones are left out. Each batch draws the smallest ones again, so it is large.
EXAMPLES = 200
#: Product of all sizes above which emulated CUDA, which runs one thread after another, is left out.
EMULATED_VOLUME = 2**14


class LostDevice(Exception):
    """The process can use its CUDA device no more since the call that was noted last. The message says why."""


#: The fields of `Counts` that are times.
TIMES = ("drawing", "oracle", "calling", "comparing")


@dataclass(frozen=True, order=True)
class Place:
    """What is soaked by itself: a form of an operator in a dtype. `device` is cpu, with emulated CUDA, or cuda."""

    operator: str
    form: str
    dtype: str
    device: str

    @property
    def contract(self) -> Operator:
        return discovery.operator(self.operator).in_form(self.form)

    def seed(self, number: int) -> int:
        """Hypothesis's seed of that batch; another one in each place, for other scenarios."""
        return zlib.crc32(f"{self.contract.title} {self.dtype} {number}".encode())

    def __str__(self) -> str:
        return f"{self.contract.title} {self.dtype} on {self.device}"


@dataclass
class Counts:
    """What was called on one device. A call counts only if it compared a gradient; `without_gradients` are the others.

    `alarmed` are the scenarios of which at least one call was an alarm. The times are seconds of the processor,
    so that other work on the machine does not count.
    """

    scenarios: int = 0
    alarmed: int = 0
    calls: int = 0
    without_gradients: int = 0
    alarms: int = 0
    drawing: float = 0.0
    oracle: float = 0.0
    calling: float = 0.0
    comparing: float = 0.0

    def add(self, results: list[Result]) -> None:
        """Count the calls of one scenario."""
        alarms = sum(result.verdict != PASS for result in results)
        # Which gradients an alarm would have compared, nobody knows.
        counted = sum(result.gradients or result.verdict != PASS for result in results)
        self.scenarios += 1
        self.alarmed += alarms > 0
        self.calls += counted
        self.without_gradients += len(results) - counted
        self.alarms += alarms
        self.calling += sum(result.calling for result in results)
        self.comparing += sum(result.comparing for result in results)


@dataclass
class Outcome:
    """The counts of a batch by device, the implementations that were called there, and its alarms."""

    counts: dict[str, Counts] = field(default_factory=dict)
    implementations: dict[str, list[str]] = field(default_factory=dict)
    finds: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return asdict(self)


#: Is told of each call before it is made: the device, the implementation and the scenario.
Note = Callable[[str, str, Scenario], None]


def drawn(operator: Operator, first: int, count: int = EXAMPLES) -> list[Scenario]:
    """At most `count` scenarios, none of them twice, always the same for one seed."""
    found: dict[Scenario, None] = {}

    @seed(first)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios(operator))
    def note(scenario: Scenario) -> None:
        found[scenario] = None

    note()
    return list(found)


def run(place: Place, number: int, note: Note, count: int = EXAMPLES) -> Outcome:
    """Run the batch of that number. Raises Broken, CannotBuild, LostDevice."""
    outcome, contract = Outcome(), place.contract
    subjects = {
        device: [subject.in_form(contract) for subject in right(place.operator, place.dtype, device)]
        for device in DEVICES[place.device]
    }
    outcome.counts = {device: Counts() for device in subjects}
    outcome.implementations = {device: [one.backend for one in of] for device, of in subjects.items()}
    start = time.process_time()
    drawing = drawn(contract, place.seed(number), count)
    outcome.counts[place.device].drawing = time.process_time() - start
    seen: set[tuple[str, str, str, str]] = set()
    for scenario in drawing:
        start = time.process_time()
        with suppress(Exception):  # each call then raises it too, as an alarm
            oracle.expected(contract, scenario, DTYPE_NAMES[place.dtype])
        outcome.counts[place.device].oracle += time.process_time() - start
        for device, own in subjects.items():
            if device == CUDA_EMULATED and prod(size for _, size in scenario.sizes) > EMULATED_VOLUME:
                continue
            results = _call_all(own, scenario, note)
            outcome.counts[device].add(list(results.values()))
            alarm = _first_alarm(results)
            if alarm is None:
                continue
            # A defect may raise one alarm after another: one of each kind is enough.
            kind = (device, alarm, results[alarm].verdict, results[alarm].tensor)
            if kind not in seen:
                seen.add(kind)
                outcome.finds.append(_find(place, device, number, own, scenario, results, note))
    oracle.forget()
    return outcome


def _call_all(subjects: list[Subject], scenario: Scenario, note: Note) -> dict[str, Result]:
    found = {}
    for subject in subjects:
        found[subject.backend] = _call(subject, scenario, note)
    return found


def _call(subject: Subject, scenario: Scenario, note: Note) -> Result:
    """One call. Raises LostDevice: each call after it would raise an alarm."""
    note(subject.device, subject.backend, scenario)
    result = calling.call(subject, scenario)
    if result.verdict != PASS and (why := lost_device()):
        raise LostDevice(why)
    return result


def _first_alarm(results: dict[str, Result]) -> str | None:
    return next((name for name, result in results.items() if result.verdict != PASS), None)


def _find(
    place: Place,
    device: str,
    number: int,
    subjects: list[Subject],
    scenario: Scenario,
    results: dict[str, Result],
    note: Note,
) -> dict[str, Any]:
    """The alarm as the state has it: the smallest scenario that raises it, and what every implementation returns there.

    If nearly all fail alike, the suite is wrong rather than one of them.
    """
    name = _first_alarm(results)
    assert name is not None
    subject = next(subject for subject in subjects if subject.backend == name)

    def still(simpler: Scenario) -> bool:
        return _call(subject, simpler, note).is_like(results[name])

    smallest = shrunk(scenario, still)
    after = _call_all(subjects, smallest, note) if smallest != scenario else results
    if not after[name].is_like(results[name]):  # it comes and goes
        smallest, after = scenario, results
    return {
        **find_of(place, device, name, number, after[name], to_json(smallest)),
        "failed": {other: result.reason for other, result in after.items() if result.verdict != PASS},
        "passed": [other for other, result in after.items() if result.verdict == PASS],
        "drawn": {
            "scenario": to_json(scenario),
            "failed": sum(result.verdict != PASS for result in results.values()),
            "of": len(results),
        },
    }


def find_of(
    place: Place, device: str, implementation: str, number: int, result: Result, scenario: dict[str, Any]
) -> dict[str, Any]:
    """What a find says of one implementation."""
    return {
        "operator": place.operator,
        "form": place.form,
        "implementation": implementation,
        "device": device,
        "dtype": place.dtype,
        "verdict": result.verdict,
        "tensor": result.tensor,
        "reason": result.reason,
        "seed": number,
        "scenario": scenario,
    }
