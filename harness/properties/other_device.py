"""Tensors on a GPU that is not the current one: the work is done on their GPU."""

from __future__ import annotations

from typing import Any

import torch

from backends.base import CUDA
from harness.errors import Failure, NotApplicable
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import realise
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION


def check(subject: Subject) -> dict[str, Any]:
    """Forward and backward on cuda:1 while cuda:0 is current; afterwards cuda:0 must still be current."""
    if torch.cuda.device_count() < 2:
        raise NotApplicable(f"needs two GPUs, this machine has {torch.cuda.device_count()}")
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    measure = expected(subject.operator, scenario, subject.dtype)
    call = realise(subject.operator, scenario, subject.dtype, "cuda:1")
    for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True):
        tensor.requires_grad_(arg.differentiable)
    with torch.cuda.device(0):
        outputs = subject.outputs(call, scenario)
        gradients = subject.gradients(call, outputs, scenario)
        if torch.cuda.current_device() != 0:
            raise Failure(f"the current device was {torch.cuda.current_device()} after the call, but should still be 0")
    torch.cuda.synchronize("cuda:1")
    tally.scenarios += 1
    tally.hold_all(scenario, measure, outputs, gradients)
    return tally.figures()


PROPERTY = Property(
    "other-device",
    "tensors on a GPU that is not current are processed there",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    devices=(CUDA,),
    why_only="there are several devices only on cuda",
)
