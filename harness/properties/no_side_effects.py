"""Inputs and cotangents are not changed, and outputs belong to the caller: they share memory with nothing.

That is seen most easily where there was something to compute. Where a result equals an input, a function may return the
input itself; so it is called there too, at small sizes and beyond the integers of its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from backends.base import SIMULATED
from harness.errors import Failure, NotTaken
from harness.executing.runner import state
from harness.judging.bits import bits
from harness.judging.constants import constants_of
from harness.judging.identities import identities
from harness.judging.oracle import said_by_the_reference
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import representative, smallest
from harness.judging.side_effects import hold_no_effects
from harness.judging.subject import Subject
from harness.report.levels import SAFE

#: Calls with neutral values at most; a simulated GPU takes longer for each.
NEUTRAL, NEUTRAL_SIMULATED = 600, 40
#: Results of one call after the other that are kept: a function may take turns among some buffers.
KEPT = 40


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
    return {"scenarios": len(scenarios), "neutral": _returns_no_input(subject)}


def _returns_no_input(subject: Subject) -> int:
    """Calls in inference mode, where grad is off too, in which a result may equal an input. Returns their number."""
    constants, device = constants_of(subject.files or ()), subject.torch_device
    most = NEUTRAL_SIMULATED if subject.device in SIMULATED else NEUTRAL
    made = 0
    for sizes, kept, values in islice(identities(subject.operator, constants, subject.dtype), most):
        scenario = Scenario(tuple(sizes.items()), name=f"neutral but for {kept}", wanted=())
        with torch.inference_mode():
            call = Call(tuple(tensor.to(device) for tensor in values), tuple(None for _ in subject.operator.outputs))
            before = [tensor.clone() for tensor in call.inputs]
            try:
                outputs = subject.outputs(call, scenario)
            except Failure:
                if _is_refused(subject, call):
                    continue
                raise
            hold_no_effects(subject, scenario, call, before, outputs, " under inference_mode")
        made += 1
    return made


def _is_refused(subject: Subject, call: Call) -> bool:
    """Whether the reference of a derived contract raises for that call: sizes were chosen without asking it."""
    try:
        with said_by_the_reference(subject.operator, call):
            subject.operator.forward(*call.to_float64().inputs)
    except NotTaken:
        return True
    return False


def _stays_as_it_was(subject: Subject, scenario: Scenario) -> None:
    where = f"[{scenario.describe(subject.operator)}]"
    call = subject.realise(scenario)
    watched = {arg.name: tensor for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)}
    for arg, cotangent in zip(subject.operator.outputs, call.cotangents, strict=True):
        if cotangent is not None:
            watched[f"the cotangent of {arg.name}"] = cotangent
    before = {name: bits(tensor) for name, tensor in watched.items()}
    states = {name: state(tensor) for name, tensor in watched.items()}

    def hold(phase: str) -> None:
        for name, tensor in watched.items():
            for what, was in states[name].items():
                if state(tensor)[what] != was:
                    raise Failure(f"{phase} changed the {what} of {name}, but should leave it as it was {where}")
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
        kept = [subject.outputs(call, scenario) for _ in range(KEPT)]
    *_, earlier, outputs = kept
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
    _hold_own_storages(subject, kept, where)


def _hold_own_storages(subject: Subject, kept: Sequence[Sequence[Tensor]], where: str) -> None:
    """No result is in the memory of one that somebody still has, as in a ring of buffers."""
    seen: dict[int, str] = {}
    for outputs in kept:
        for arg, output in zip(subject.operator.outputs, outputs, strict=True):
            address = output.untyped_storage().data_ptr()
            if output.numel() and address in seen:
                raise Failure(
                    f"{arg.name} shares memory with {seen[address]} of an earlier call, which is still there, but "
                    f"should not {where}"
                )
        names = zip(outputs, subject.operator.outputs, strict=True)
        seen |= {y.untyped_storage().data_ptr(): arg.name for y, arg in names if y.numel()}


PROPERTY = Property("no-side-effects", "inputs are not changed, outputs alias nothing", check, level=SAFE)
