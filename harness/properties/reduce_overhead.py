"""On CUDA, torch.compile(mode="reduce-overhead") replays forward and backward as CUDA graphs, and they are right.

That mode captures what Inductor compiled into graphs that share one pool of memory, and replays them. An operator whose
result depends on a pointer of its first call, or on something that the host computed then, is right the first time and
wrong the third. So each call has values of its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.properties.compile import compiling, plain
from harness.report.levels import PYTORCH

#: Calls: the first compiles, the second captures, the others replay.
_CALLS = 5


def check(subject: Subject) -> dict[str, Any]:
    """Several calls with different values, forward and backward."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    with compiling():
        function = torch.compile(plain(subject.function), fullgraph=True, mode="reduce-overhead")
        tally.subject = replace(subject, function=function)
        for number in range(_CALLS):
            torch.compiler.cudagraph_mark_step_begin()  # type: ignore[no-untyped-call]
            try:
                tally.run(replace(scenario, seed=scenario.seed + number))
            except Failure as failure:
                # No scenario: the script that would reproduce it calls the operator eagerly.
                raise failure.prefixed(f'under torch.compile(mode="reduce-overhead"), call {number}, ') from failure
    return {**tally.figures(), "calls": _CALLS}


PROPERTY = Property(
    "reduce-overhead",
    "torch.compile may replay forward and backward as CUDA graphs",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float32",),
    devices=(CUDA,),
    why_only="CUDA graphs exist on the device cuda only, and what is captured is the same code in every dtype",
)
