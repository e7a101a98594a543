"""A call leaves the state of the process unchanged: defaults, modes, generators, flags, filters and functions.

An operator that sets the default dtype, seeds the generator, turns TF32 on or flushes denormals changes every line that
runs after it, far from the place where one would look. So all such state is read before and after a forward, a
backward, a forward without grad and a call that is refused (code that sets and resets state often forgets this path).
This is done twice: from the usual state and from an unusual one, because to reset a flag to its usual value is a change
too. From the usual state, forward and backward are also called with each size at a multiple of small blocks, and beyond
the integers of the source.

Each thread has a floating-point mode of its own: the flushing of denormals, rounding, traps. It is read on the calling
thread, on torch's OpenMP threads, on the threads of its pool for tasks if that was started, and on the GPU's thread of
autograd. Threads that a candidate starts by itself are its own.

The effects of the import and of the first call of a process are checked in a fresh process: it loads the implementation
and calls it once in every form. That takes seconds and does not depend on the dtype, so it is done in float32 only, by
the first form for all. If it cannot be done because the function cannot be found by name, the figures say so.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch

from backends.base import SIMULATED
from harness.errors import Failure
from harness.judging import first_use, harvested
from harness.judging.constants import constants_of
from harness.judging.process_state import Watch, probes, watched
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject
from harness.judging.wrong_calls import wrong_calls
from harness.report.levels import PYTORCH

#: Sizes beyond constants of the source at which forward and backward are called, and elements of such a call and of all
#: of them: no result is compared, so they may be larger than where an oracle is asked. They take a second or two.
BEYOND, VOLUME, ROOM = 40, 2**25, 2**26
#: A multiple of 2, 3, 4, 5, 6, 8, 10 and 12, so of most small blocks; the other where the reference loops.
MULTIPLE, STEPS = 120, 60


def check(subject: Subject) -> dict[str, Any]:
    """Every phase, from the usual state and from an unusual one; then in a fresh process."""
    scenario = smallest(subject.operator)
    first_use.warm_up(subject, scenario)
    phases = 0
    with watched(subject.device) as watch:
        phases += _phases(subject, scenario, watch)
        phases += _other_sizes(subject, watch)
        with watched(subject.device) as inner:
            inner.unusual()
            try:
                phases += _phases(subject, scenario, inner)
            finally:
                inner.put_back()
    return {"phases": phases, "probes": len(probes(subject.device)), "fresh process": first_use.hold(subject)}


def _other_sizes(subject: Subject, watch: Watch) -> int:
    """Calls at multiples, and at sizes beyond the integers of its source. Other threads are asked at the end."""
    operator = subject.operator
    multiples = [(name, STEPS if name in operator.sequential else MULTIPLE) for name in operator.symbols()]
    most = harvested.VOLUME if subject.device in SIMULATED else VOLUME
    sizes = harvested.beyond(operator, constants_of(subject.files or ()))
    beyond = islice(harvested.of_no_oracle(operator, sizes, most, ROOM), BEYOND)
    scenarios = [*harvested.small(operator, multiples), *beyond]
    for scenario in scenarios:
        call = subject.realise(scenario)
        subject.gradients(call, subject.outputs(call, scenario), scenario)
        for name, now, was in watch.changes(elsewhere=scenario is scenarios[-1]):
            raise Failure(
                f"{name} was {now} after forward and backward, but should be left as it was, {was} "
                f"[{scenario.describe(operator)}]"
            )
    return 2 * len(scenarios)


def _phases(subject: Subject, scenario: Scenario, watch: Watch) -> int:
    where = f"[{scenario.describe(subject.operator)}]"

    def hold(phase: str, elsewhere: bool = True) -> None:
        for name, now, was in watch.changes(elsewhere):
            raise Failure(f"{name} was {now} after {phase}, but should be left as it was, {was} {where}")

    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    hold("forward")
    subject.gradients(call, outputs, scenario)
    hold("backward")
    with torch.no_grad():
        subject.outputs(call, scenario)
        if torch.is_grad_enabled():
            raise Failure(
                f"grad mode was True after forward under no_grad, but should be left as it was, False {where}"
            )
    hold("forward under no_grad")
    inputs = tuple(tensor.detach() for tensor in call.inputs)
    count = 3
    for wrong in wrong_calls(subject.operator, dict(scenario.sizes), inputs):
        if wrong.kind in ("shape", "dtype"):
            try:
                wrong.make(subject)
            except CANDIDATE_ERRORS:
                hold(f"a refused call with {wrong.what}", elsewhere=False)
                count += 1
    hold("calls that were refused")
    return count


PROPERTY = Property(
    "global-state",
    "defaults, modes, generators, flags and functions are left as they were",
    check,
    view=INTEGRATION,
    level=PYTORCH,
)
