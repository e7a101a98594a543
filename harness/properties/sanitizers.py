"""The C++ of a candidate reads and writes inside its tensors, and has no undefined behaviour.

Asked of candidates with `--sanitize`. The candidate has one more process, in which what it compiles is built with
AddressSanitizer and UBSan: see `harness.running.sanitizers`. A finding ends that process. The other properties keep
their processes, so their cells and limits are as usual.
"""

from __future__ import annotations

from typing import Any

from backends.base import CPU
from harness.errors import NotApplicable
from harness.judging.property import Property
from harness.judging.scenarios import at_edges, of_layouts, of_sizes, ordinary, tagged
from harness.judging.subject import Subject
from harness.report.levels import SAFE


def check(subject: Subject) -> dict[str, Any]:
    """Call at ordinary values, edges, sizes and layouts, forward and backward. Other properties compare the values."""
    if subject.remote is None:
        raise NotApplicable("the function runs in the judge's process, which has no sanitizer: leave out --isolate=off")
    operator = subject.operator
    left_out = {case.name for tag in ("block", "grid") for case in tagged(operator, tag)}
    sizes = [scenario for scenario in of_sizes(operator) if scenario.name not in left_out]
    asked = [*ordinary(operator), *at_edges(operator), *sizes, *of_layouts(operator)]
    for scenario in asked:
        call = subject.realise(scenario)
        subject.gradients(call, subject.outputs(call, scenario), scenario)
    return {"scenarios": len(asked), "left_out": sorted(left_out)}


PROPERTY = Property(
    "sanitizers",
    "AddressSanitizer and UBSan find nothing in its C++ (with --sanitize)",
    check,
    level=SAFE,
    outside=True,
    sanitized=True,
    devices=(CPU,),
    why_only="they watch code of the host; `compute-sanitizer` watches kernels",
)
