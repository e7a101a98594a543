"""Calls that want some gradients, compared with the call of the same tensors that wants all of them.

A backward that leaves gradients out may take another path. Of large tensors an expected result takes seconds, and to
compare a call with it takes ten times as long as the call itself. So the call that wants all gradients is compared
with one run of the reference (`harness.judging.near`), and then the others with it: half of the digits must be the
same. What differs is judged by its expected results, so nothing fails by this comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from harness.errors import Ended, Failure
from harness.judging.near import half_of_the_digits, named, passes
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally


def run_like_whole(tally: Tally, scenario: Scenario, subsets: Iterable[tuple[str, ...]]) -> None:
    """Make the call for each subset of wanted gradients. Raises Failure."""
    subject, call = tally.subject, tally.subject.realise(scenario)
    whole = _results(subject, call, scenario)
    allowed = {name: _allowed(tensor, half_of_the_digits(subject.dtype)) for name, tensor in whole.items()}
    is_right = passes(subject, scenario, whole)
    for wanted in subsets:
        asked = replace(scenario, wanted=wanted)
        if is_right and _is_like(subject, call, asked, whole, allowed):
            tally.scenarios += 1
        else:
            tally.run(asked, spared=True)


def _is_like(
    subject: Subject, call: Call, scenario: Scenario, whole: Mapping[str, Tensor], allowed: Mapping[str, Tensor]
) -> bool:
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
    return all(_are_near(found[name], whole[name], allowed[name]) for name in found)


def _results(subject: Subject, call: Call, scenario: Scenario) -> dict[str, Tensor]:
    """Outputs and gradients by name."""
    outputs = subject.outputs(call, scenario)
    gradients = subject.gradients(call, outputs, scenario)
    return named(subject, [output.detach() for output in outputs], gradients)


def _allowed(whole: Tensor, part: float) -> Tensor:
    """That part of each element and of the tensor's typical element; nothing of integers."""
    if not whole.is_floating_point():
        return torch.zeros_like(whole)
    typical = float(whole.float().norm()) / math.sqrt(max(whole.numel(), 1))
    return (whole.abs() + typical) * part


def _are_near(found: Tensor, whole: Tensor, allowed: Tensor) -> bool:
    if not whole.is_floating_point():
        return torch.equal(found, whole)
    return bool(((found - whole).abs_() <= allowed).all())
