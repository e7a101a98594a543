"""Without autograd the operator gives right values too: under no_grad, under inference_mode, with frozen inputs.

A fast path for inference is a second implementation, and users see that one. Its values must be within the allowance,
as those of training must. They need not be the same bits: torch.compile fuses a forward that saves nothing in another
way, and rounds elsewhere. The figure `bits` says whether they are. Its outputs must not require grad. And it must not
hinder a later training step: autograd refuses to save a tensor that was cached under inference_mode, for example.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure
from harness.judging.bits import bits
from harness.judging.oracle import expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import smallest, tagged
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import SAFE


@dataclass(frozen=True)
class _Mode:
    """A way to call: the context, which inputs require grad, and whether the inputs are made inside the context."""

    words: str
    context: Callable[[], AbstractContextManager[object]]
    wanted: tuple[str, ...]
    made_inside: bool = False


def _modes(subject: Subject) -> list[_Mode]:
    inputs = [arg for arg in subject.operator.inputs if arg.differentiable]
    names = tuple(arg.name for arg in inputs)
    # An input without a row for each row of the batch is a parameter.
    data = tuple(arg.name for arg in inputs if arg.row_dim is not None)
    return [
        _Mode("under inference_mode", torch.inference_mode, names),
        _Mode("under inference_mode, with inputs made there", torch.inference_mode, (), made_inside=True),
        _Mode("under no_grad", torch.no_grad, names),
        _Mode("with every input frozen", nullcontext, ()),
        _Mode("with frozen parameters", nullcontext, data),
    ]


def check(subject: Subject) -> dict[str, Any]:
    """Every mode at two sizes, before a training step and after it."""
    tally = Tally(subject)
    operator = subject.operator
    scenarios = [smallest(operator), *(Scenario.of(case) for case in tagged(operator, "benchmark")[:1])]
    differing: dict[str, None] = {}
    for scenario in scenarios:
        measure = expected(operator, scenario, subject.dtype)
        before = {mode.words: _values(subject, scenario, mode) for mode in _modes(subject)}
        tally.run(scenario)  # with grad; checks that the values are right
        call = subject.realise(scenario)
        trained = subject.outputs(call, scenario)
        for mode in _modes(subject):
            for values, when in ((before[mode.words], ""), (_values(subject, scenario, mode), ", after training")):
                try:
                    tally.hold_all(scenario, measure, values, {})
                except Failure as failure:
                    raise failure.prefixed(f"{mode.words}{when}: ") from failure
                if not all(torch.equal(bits(y), bits(t)) for y, t in zip(values, trained, strict=True)):
                    differing[mode.words] = None
    same = f"others than with grad {', '.join(differing)}" if differing else "those with grad"
    return {**tally.figures(), "modes": [mode.words for mode in _modes(subject)], "bits": same}


def _values(subject: Subject, scenario: Scenario, mode: _Mode) -> tuple[Tensor, ...]:
    """The outputs in this mode. Raises Failure if one of them requires grad."""
    call = None if mode.made_inside else _frozen(subject, subject.realise(scenario), mode)
    with mode.context():
        call = call or _frozen(subject, subject.realise(scenario), mode)
        should = torch.is_grad_enabled() and bool(mode.wanted)
        found = subject.outputs(call, scenario)
    for arg, value in zip(subject.operator.outputs, found, strict=True):
        if value.requires_grad and not should:  # otherwise gradient-subsets checks which output depends on which input
            where = f"[{scenario.describe(subject.operator)}]"
            raise Failure(f"{arg.name} {mode.words} requires grad, but should not {where}")
    return found


def _frozen(subject: Subject, call: Call, mode: _Mode) -> Call:
    for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True):
        if not tensor.is_inference():
            tensor.requires_grad_(arg.name in mode.wanted)
    return call


PROPERTY = Property(
    "inference-modes",
    "no_grad and inference_mode give right values, and do not hinder training",
    check,
    view=INTEGRATION,
    level=SAFE,
)
