"""Calls that want some gradients, compared with the call of the same tensors that wants all of them.

A backward that leaves gradients out may take another path. Of large tensors an expected result takes seconds, and to
compare a call with it takes ten times as long as the call itself. So the call that wants all gradients is compared
with one run of the reference (`harness.judging.near`), and then the others with it: half of the digits must be the
same. What differs is judged by its expected results, so nothing fails by this comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from torch import Tensor

from harness.errors import Ended, Failure
from harness.judging.near import passes
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from spec.roundoff import UNIT_ROUNDOFF


def run_like_whole(tally: Tally, scenario: Scenario, subsets: Iterable[tuple[str, ...]]) -> None:
    """Make the call for each subset of wanted gradients. Raises Failure."""
    subject, call = tally.subject, tally.subject.realise(scenario)
    whole = _results(subject, call, scenario)
    outputs = [whole[arg.name] for arg in subject.operator.outputs]
    gradients = {arg.name: whole[name] for arg in subject.operator.inputs if (name := _gradient(arg.name)) in whole}
    is_right = passes(subject, scenario, outputs, gradients)
    part = math.sqrt(UNIT_ROUNDOFF[subject.dtype])
    for wanted in subsets:
        asked = replace(scenario, wanted=wanted)
        if is_right and _is_like(subject, call, asked, whole, part):
            tally.scenarios += 1
        else:
            tally.run(asked, spared=True)


def _is_like(subject: Subject, call: Call, scenario: Scenario, whole: dict[str, Tensor], part: float) -> bool:
    inputs = tuple(
        tensor.detach().requires_grad_(arg.name in scenario.wanted_by(subject.operator))
        for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True)
    )
    try:
        found = _results(subject, Call(inputs, call.cotangents), scenario)
    except Ended:
        raise
    except Failure:
        return False
    return all(_are_near(found[name], whole[name], part) for name in found)


def _results(subject: Subject, call: Call, scenario: Scenario) -> dict[str, Tensor]:
    """Outputs and gradients by name."""
    outputs = subject.outputs(call, scenario)
    gradients = subject.gradients(call, outputs, scenario)
    found = {arg.name: output.detach() for arg, output in zip(subject.operator.outputs, outputs, strict=True)}
    return found | {_gradient(name): gradient for name, gradient in gradients.items()}


def _gradient(name: str) -> str:
    return f"gradient of {name}"


def _are_near(found: Tensor, whole: Tensor, part: float) -> bool:
    """Whether each element is the same but for that part of itself and of the tensor's typical element."""
    if not whole.is_floating_point():
        return bool((found == whole).all())
    typical = float(whole.float().norm()) / math.sqrt(max(whole.numel(), 1))
    return bool(((found - whole).abs_() <= (whole.abs() + typical) * part).all())
