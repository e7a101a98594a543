"""What a call did besides returning values: outputs that share memory, and inputs that it changed.

Some kernels return an input where nothing was to be done: for one row, for rows that are equal, without grad. The next
operation in place then changes the caller's tensor. Others return one row for all rows that are equal, with stride 0:
the next operation in place raises.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from harness.errors import Failure
from harness.judging.bits import bits
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject
from harness.report.levels import SAFE


def hold_no_effects(
    subject: Subject, scenario: Scenario, call: Call, before: Sequence[Tensor], outputs: Sequence[Tensor], mode: str
) -> None:
    """Raise Failure, at the level `safe`, if an output shares memory with an input or itself, or an input was changed.

    `before` are copies of the inputs from before the call, and `mode` is added to "forward", as in " under no_grad".
    The process of a candidate reports on itself here.
    """
    if subject.remote is not None:
        shares, changed, overlaps, turned = subject.remote.effects()
    else:
        shares = [
            (k, n)
            for k, y in enumerate(outputs)
            for n, x in enumerate(call.inputs)
            if y.numel() and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        ]
        pairs = zip(call.inputs, before, strict=True)
        changed = [n for n, (now, was) in enumerate(pairs) if bool((bits(now) != bits(was)).any())]
        overlaps, turned = [k for k, y in enumerate(outputs) if overlaps_itself(y)], []
    where, (given, returned) = f"[{scenario.describe(subject.operator)}]", (subject.operator.inputs, outputs)
    for k, n in shares:
        if k < len(returned) and n < len(given):
            name = subject.operator.outputs[k].name
            raise Failure(
                f"{name} of forward{mode} shares memory with {given[n].name}, but should have its own {where}",
                level=SAFE,
            )
    for k in overlaps:
        # A reference that broadcasts its result may be followed.
        if k < len(returned) and not overlaps_itself(subject.operator.forward(*call.inputs)[k]):
            raise Failure(
                f"{subject.operator.outputs[k].name} of forward{mode} has several elements in one place of memory "
                f"(stride 0), but should have a place for each, so that it can be written to {where}",
                level=SAFE,
            )
    for n in changed:
        if n < len(given):
            raise Failure(f"forward{mode} changed {given[n].name}, but should leave it as it was {where}", level=SAFE)
    for n, what in turned:
        if n < len(given):
            raise Failure(
                f"forward{mode} changed the {what} of {given[n].name}, but should leave it as it was {where}",
                level=SAFE,
            )


def overlaps_itself(tensor: Tensor) -> bool:
    """Whether two elements have one place in memory: a dimension of stride 0."""
    return any(length > 1 and step == 0 for length, step in zip(tensor.shape, tensor.stride(), strict=True))
