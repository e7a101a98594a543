"""On CUDA, work is queued on the current stream: forward and backward run after the work that is already queued there.

The inputs hold NaN, and labels 0, until a side stream, after some milliseconds of sleep, copies the values in. An
implementation that launches on another stream, usually the legacy default stream, reads the NaN.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends.base import CUDA
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Call
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION

#: About 10 ms at 2 GHz, far longer than the host needs to queue the rest.
_CYCLES = 20_000_000


def check(subject: Subject) -> dict[str, Any]:
    """Forward and backward on a side stream that is busy when they are called."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    tally.first_plainly(scenario)
    measure = expected(subject.operator, scenario, subject.dtype)
    values = subject.realise(scenario)
    subject.outputs(values, scenario)  # one-time work of the first call is not tested here
    torch.cuda.synchronize()
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    staged = Call(tuple(_unready(t) for t in values.inputs), values.cotangents)
    with torch.cuda.stream(side):
        torch.cuda._sleep(_CYCLES)  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for late, value in zip(staged.inputs, values.inputs, strict=True):
                late.copy_(value)
        outputs = subject.outputs(staged, scenario)
        gradients = subject.gradients(staged, outputs, scenario)
    torch.cuda.synchronize()
    tally.scenarios += 1
    tally.hold_all(scenario, measure, outputs, gradients)
    return tally.figures()


def _unready(value: Tensor) -> Tensor:
    """A tensor for value to be copied into."""
    return torch.full_like(value, float("nan") if value.is_floating_point() else 0, requires_grad=value.requires_grad)


PROPERTY = Property(
    "current-stream",
    "forward and backward run on the current CUDA stream",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    devices=(CUDA,),
    why_only="streams exist on the device cuda only",
)
