"""Inputs and cotangents are not changed, and outputs belong to the caller: they share memory with nothing."""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import Failure
from harness.judging.bits import bits
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import representative, smallest
from harness.judging.subject import Subject
from harness.report.levels import SAFE


def check(subject: Subject) -> dict[str, Any]:
    """Forward and backward, contiguous and not: compare bits before and after; then write to each output in turn.

    Forward of many other calls is watched by `combinations`.
    """
    names = [arg.name for arg in subject.operator.inputs]
    scenarios = [
        smallest(subject.operator),
        Scenario.of(representative(subject.operator), layouts=tuple((name, "padded") for name in names)),
    ]
    for scenario in scenarios:
        _stays_as_it_was(subject, scenario)
        _owns_its_memory(subject, scenario)
    return {"scenarios": len(scenarios)}


def _stays_as_it_was(subject: Subject, scenario: Scenario) -> None:
    where = f"[{scenario.describe(subject.operator)}]"
    call = subject.realise(scenario)
    watched = {arg.name: tensor for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)}
    for arg, cotangent in zip(subject.operator.outputs, call.cotangents, strict=True):
        if cotangent is not None:
            watched[f"the cotangent of {arg.name}"] = cotangent
    before = {name: bits(tensor) for name, tensor in watched.items()}

    def hold(phase: str) -> None:
        for name, tensor in watched.items():
            changed = int((bits(tensor) != before[name]).sum())
            if changed:
                raise Failure(
                    f"{phase} changed {changed} elements of {name} in place, but should leave it as it was {where}"
                )

    # Without grad first: in-place work on a leaf does not raise there.
    with torch.no_grad():
        subject.outputs(call, scenario)
    hold("forward under no_grad")
    outputs = subject.outputs(call, scenario)
    hold("forward")
    kept = [bits(output) for output in outputs]
    subject.gradients(call, outputs, scenario)
    hold("backward")
    for arg, output, as_returned in zip(subject.operator.outputs, outputs, kept, strict=True):
        if not torch.equal(bits(output), as_returned):
            raise Failure(f"backward changed {arg.name}, but should leave it as it was {where}")


def _owns_its_memory(subject: Subject, scenario: Scenario) -> None:
    where = f"[{scenario.describe(subject.operator)}]"
    call = subject.realise(scenario)
    with torch.no_grad():
        earlier = subject.outputs(call, scenario)
        outputs = subject.outputs(call, scenario)
    others = {arg.name: tensor for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)}
    others |= {f"{arg.name} of an earlier call": y for arg, y in zip(subject.operator.outputs, earlier, strict=True)}
    others |= {arg.name: y for arg, y in zip(subject.operator.outputs, outputs, strict=True)}
    for arg, output in zip(subject.operator.outputs, outputs, strict=True):
        before = {name: bits(tensor) for name, tensor in others.items() if name != arg.name}
        try:
            with torch.no_grad():
                first = output.flatten()[0].item()
                output.fill_(1 - first if arg.is_floating else not first)
        except RuntimeError as error:
            raise Failure(f"{arg.name} cannot be written to, but should own its memory: {error} {where}") from error
        for name, as_it_was in before.items():
            if not torch.equal(bits(others[name]), as_it_was):
                raise Failure(
                    f"{arg.name} shares memory with {name}, but should not: writing to one changes the other {where}"
                )


PROPERTY = Property("no-side-effects", "inputs are not changed, outputs alias nothing", check, level=SAFE)
