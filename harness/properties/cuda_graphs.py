"""Forward and backward can be captured in a CUDA graph, and a replay computes with the current values of the inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION


def check(subject: Subject) -> dict[str, Any]:
    """Capture with one set of values, replay with two others."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    static = subject.realise(scenario)
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # PyTorch requires a warm-up on a side stream before a capture
        subject.gradients(static, subject.outputs(static, scenario), scenario)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            outputs = subject.outputs(static, scenario)
            gradients = subject.gradients(static, outputs, scenario)
    except (Failure, RuntimeError) as error:
        raise Failure(
            f"capture in a CUDA graph raised {one_line(error)}, but should work: no synchronisation, no "
            "allocation outside PyTorch's allocator, nothing on another stream"
        ) from error
    for seed in (1, 2):
        fresh = replace(scenario, seed=seed)
        call = subject.realise(fresh)
        with torch.no_grad():
            for held, value in zip((*static.inputs, *static.cotangents), (*call.inputs, *call.cotangents), strict=True):
                if held is not None and value is not None:
                    held.copy_(value)
        graph.replay()
        torch.cuda.synchronize()
        tally.scenarios += 1
        tally.hold_all(fresh, expected(subject.operator, fresh, subject.dtype), outputs, gradients)
    return tally.figures()


PROPERTY = Property(
    "cuda-graphs",
    "capture and replay with new inputs",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    devices=(CUDA,),
    why_only="CUDA graphs exist on the device cuda only",
)
