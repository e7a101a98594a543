"""What a call did besides returning values: outputs that share memory with inputs, and inputs that it changed.

Some kernels return an input where nothing was to be done: for one row, for rows that are equal, without grad. The next
operation in place then changes the caller's tensor.
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
    """Raise Failure, at the level `safe`, if an output has the storage of an input or forward changed an input.

    `before` are copies of the inputs from before the call, and `mode` is added to "forward", as in " under no_grad".
    The process of a candidate reports on itself here.
    """
    if subject.remote is not None:
        shares, changed = subject.remote.effects()
    else:
        shares = [
            (k, n)
            for k, y in enumerate(outputs)
            for n, x in enumerate(call.inputs)
            if y.numel() and y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        ]
        pairs = zip(call.inputs, before, strict=True)
        changed = [n for n, (now, was) in enumerate(pairs) if bool((bits(now) != bits(was)).any())]
    where, (given, returned) = f"[{scenario.describe(subject.operator)}]", (subject.operator.inputs, outputs)
    for k, n in shares:
        if k < len(returned) and n < len(given):
            name = subject.operator.outputs[k].name
            raise Failure(
                f"{name} of forward{mode} shares memory with {given[n].name}, but should have its own {where}",
                level=SAFE,
            )
    for n in changed:
        if n < len(given):
            raise Failure(f"forward{mode} changed {given[n].name}, but should leave it as it was {where}", level=SAFE)
