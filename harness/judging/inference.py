"""A call without grad, twice at the same addresses: an answer that is kept for addresses or shapes is stale then."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

from torch import Tensor

from harness.errors import Failure
from harness.judging.combinations import without_grad
from harness.judging.near import named, passes
from harness.judging.oracle import expected
from harness.judging.scenario import Scenario
from harness.judging.side_effects import hold_no_effects
from harness.judging.tally import Tally

#: Added to the seed of a call for the values that are there before its own.
_EARLIER = 1_000


def hold_without_grad(tally: Tally, scenario: Scenario, mode: str, near: bool = False) -> None:
    """Make the call with other values, then with its own, in a mode of `WITHOUT_GRAD`.

    The outputs must be right, and share no memory with an input or with themselves; `near`: what is near the
    reference is right, and what the reference in the dtype fails too is not asked, see `harness.judging.near`.
    Raises Failure.
    """
    subject = tally.subject
    scenario = replace(scenario, wanted=(), name=f"{scenario.name}, {mode}")
    call = subject.realise(scenario)
    own = [tensor.clone() for tensor in call.inputs]
    earlier = subject.realise(replace(scenario, seed=scenario.seed + _EARLIER)).inputs
    with without_grad(mode), subject.remote.same_addresses() if subject.remote else nullcontext():
        _write(call.inputs, earlier)
        subject.outputs(call, scenario)
        _write(call.inputs, own)
        outputs = subject.outputs(call, scenario)
    if not (near and passes(subject, scenario, named(subject, outputs, {}))):
        try:
            tally.hold_all(scenario, expected(subject.operator, scenario, subject.dtype), outputs, {})
        except Failure as failure:
            if not (near and tally.doubts(scenario, failure, spared=True)):
                raise
    hold_no_effects(subject, scenario, call, own, outputs, f" under {mode}")


def _write(tensors: tuple[Tensor, ...], values: tuple[Tensor, ...] | list[Tensor]) -> None:
    """Write the values into the tensors. One that is expanded has one row, which is written once."""
    for tensor, value in zip(tensors, values, strict=True):
        expanded = tensor.dim() > 0 and tensor.shape[0] > 1 and tensor.stride(0) == 0
        (tensor[:1] if expanded else tensor).copy_(value[:1] if expanded else value)
