"""On CUDA, the results of a call belong to the stream of the call, also for PyTorch's caching allocator.

The allocator reuses a freed block at once for the stream on which it was allocated, since work on one stream keeps its
order. An implementation that allocates results on a stream of its own must call `record_stream`. Otherwise the next
call overwrites a result that the user has dropped while the user's stream still reads it. So results are read on one
stream after a sleep, and dropped; then the operator is called on another stream, several times, with other values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from backends.base import CUDA
from harness.errors import NoEvidence
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION

#: How long the reading stream sleeps in each attempt, in cycles: 0.1, 0.4 and 1 s at 2 GHz.
_CYCLES = (200_000_000, 800_000_000, 2_000_000_000)
#: Calls whose results would reuse the memory of the first ones.
_LATER = 3


def check(subject: Subject) -> dict[str, Any]:
    """Outputs and gradients that are read late, and dropped before."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    tally.first_plainly(scenario)
    other = replace(scenario, seed=scenario.seed + 1)
    call, later = subject.realise(scenario), subject.realise(other)
    subject.gradients(call, subject.outputs(call, scenario), scenario)  # one-time work is not tested here
    torch.cuda.synchronize()
    reader, writer = (torch.cuda.Stream() for _ in range(2))  # type: ignore[no-untyped-call]
    for cycles in _CYCLES:
        asleep = torch.cuda.Event()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(reader):
            outputs = subject.outputs(call, scenario)
            gradients = subject.gradients(call, outputs, scenario)
            torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
            asleep.record()
            read = [tensor.detach().clone() for tensor in outputs]
            read_gradients = {name: tensor.clone() for name, tensor in gradients.items()}
            del outputs, gradients
        with torch.cuda.stream(writer):
            others = [subject.outputs(later, other) for _ in range(_LATER)]
            of_others = [subject.gradients(later, outputs, other) for outputs in others]
        writer.synchronize()
        was_late = not asleep.query()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        tally.scenarios += 1
        measure, of_other = (expected(subject.operator, each, subject.dtype) for each in (scenario, other))
        tally.hold_all(scenario, measure, read, read_gradients)
        for outputs, gradients in zip(others, of_others, strict=True):
            tally.hold_all(other, of_other, outputs, gradients)
        if was_late:
            return tally.figures()
        del others, of_others
    raise NoEvidence(
        "in each attempt the later calls ended after the reading stream had slept: either they wait for another "
        "stream, or the GPU is busy with the work of others"
    )


PROPERTY = Property(
    "record-stream",
    "no result is overwritten while its caller's stream still reads it",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    devices=(CUDA,),
    why_only="streams exist on the device cuda only",
)
