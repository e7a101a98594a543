"""On CUDA nothing waits: forward and backward return while the GPU is still busy with earlier work.

A hidden synchronisation, by `.item()`, a copy to the host or cudaDeviceSynchronize, gives right values, but host and
GPU no longer overlap in a training step. So the stream sleeps when the operator is called: an event recorded after the
sleep must not have been reached when the call returns. A host that was itself delayed for as long looks the same. So
the property fails only if the call waits in several attempts, each with a longer sleep.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION

#: How long the stream sleeps in each attempt, in cycles: 0.1, 0.2 and 0.5 s at 2 GHz. A call takes far less.
_CYCLES = (200_000_000, 400_000_000, 1_000_000_000)

Made = TypeVar("Made")
Result = TypeVar("Result")


def check(subject: Subject) -> dict[str, Any]:
    """Forward, then backward, each behind a sleep; then their values."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    tally.first_plainly(scenario)
    where = f"[{scenario.describe(subject.operator)}]"
    measure = expected(subject.operator, scenario, subject.dtype)
    call = subject.realise(scenario)
    for _ in range(2):  # one-time work, and blocks that the allocator has to fetch, are not tested here
        subject.gradients(call, subject.outputs(call, scenario), scenario)
    outputs = _without_waiting(lambda: None, lambda _: subject.outputs(call, scenario), "forward", where)
    gradients = _without_waiting(
        lambda: subject.outputs(call, scenario), lambda made: subject.gradients(call, made, scenario), "backward", where
    )
    tally.scenarios += 1
    tally.hold_all(scenario, measure, outputs, gradients)
    return tally.figures()


def _without_waiting(prepare: Callable[[], Made], run: Callable[[Made], Result], what: str, where: str) -> Result:
    """The result of `run(prepare())` that returned before the GPU reached it. Raises Failure.

    Each attempt prepares anew: the graph of a forward serves one backward.
    """
    for cycles in _CYCLES:
        made = prepare()
        torch.cuda.synchronize()
        behind = torch.cuda.Event()  # type: ignore[no-untyped-call]
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        behind.record()
        result = run(made)
        if not behind.query():  # type: ignore[no-untyped-call]
            return result
    raise Failure(
        f"{what} returned when the GPU had done all that was queued before it, but should not wait for it: "
        f"no .item(), no copy to the host, no cudaDeviceSynchronize {where}"
    )


PROPERTY = Property(
    "no-waiting",
    "forward and backward do not wait for the GPU",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    devices=(CUDA,),
    why_only="a call on the CPU is done when it returns",
)
