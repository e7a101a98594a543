"""Outputs and gradients are right whatever two choices come together: sizes, layouts, values, cotangents, modes.

Each call of `harness.judging.combinations` is made three times, in its form of the operator. First with autograd,
outputs and gradients. Then twice without grad, at the same addresses: with other values, and with its own, so that an
answer that is kept for addresses or shapes is stale. No output may share memory with an input then.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from torch import Tensor

from harness.judging.combinations import Combination, combinations_of, without_grad
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.side_effects import hold_no_effects
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES

#: Added to the seed of a call for the values that are there before its own.
_EARLIER = 1_000


def check(subject: Subject) -> dict[str, Any]:
    """Every call of the covering array, with and without grad; the figures say how many pairs of choices occurred."""
    found, tally = combinations_of(subject.whole or subject.operator), Tally(subject)
    calls = [call for call in found.calls if call.form == subject.operator.form]
    for call in calls:
        tally.run(call.scenario)
    for call in calls:
        _without_grad(tally, call)
    counts = {"pairs": found.pairs, "covered": found.pairs_covered}
    return {**tally.figures(), **counts, "triples": found.triples, "covered_triples": found.triples_covered}


def _without_grad(tally: Tally, asked: Combination) -> None:
    subject = tally.subject
    scenario = replace(asked.scenario, wanted=(), name=f"{asked.scenario.name}, {asked.without_grad}")
    call = subject.realise(scenario)
    own = [tensor.clone() for tensor in call.inputs]
    earlier = subject.realise(replace(scenario, seed=scenario.seed + _EARLIER)).inputs
    with (
        without_grad(asked.without_grad),
        subject.remote.same_addresses() if subject.remote else nullcontext(),
    ):
        _write(call.inputs, earlier)
        subject.outputs(call, scenario)
        _write(call.inputs, own)
        outputs = subject.outputs(call, scenario)
    tally.hold_all(scenario, expected(subject.operator, scenario, subject.dtype), outputs, {})
    hold_no_effects(subject, scenario, call, own, outputs, f" under {asked.without_grad}")


def _write(tensors: tuple[Tensor, ...], values: tuple[Tensor, ...] | list[Tensor]) -> None:
    """Write the values into the tensors. One that is expanded has one row, which is written once."""
    for tensor, value in zip(tensors, values, strict=True):
        expanded = tensor.dim() > 0 and tensor.shape[0] > 1 and tensor.stride(0) == 0
        (tensor[:1] if expanded else tensor).copy_(value[:1] if expanded else value)


PROPERTY = Property(
    "combinations",
    "right for every two choices of sizes, layouts, values, cotangents and modes",
    check,
    level=VALUES,
    outside=True,
)
