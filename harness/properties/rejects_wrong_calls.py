"""A wrong argument raises an exception: nothing is silently broadcast, converted or reinterpreted.

Whether a wrong call does harm is another question: see `survives_wrong_calls`.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import Failure
from harness.judging.property import Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.wrong_calls import WrongCall, wrong_calls
from harness.report.levels import PYTORCH


def check(subject: Subject) -> dict[str, Any]:
    """Every wrong call of the contract, with and without grad."""
    scenario = smallest(subject.operator)
    sizes = dict(scenario.sizes)
    inputs = tuple(tensor.detach() for tensor in subject.realise(scenario).inputs)
    count = 0
    for call in wrong_calls(subject.operator, sizes, inputs):
        for grad in (False, True):
            accepted = _accepted(subject, call, grad)
            if accepted is not None:
                raise Failure(
                    f"a call with {call.what} returned {accepted}, but should raise: it was silently accepted "
                    f"[{scenario.describe(subject.operator)}]"
                )
            count += 1
    return {"wrong calls": count}


def _accepted(subject: Subject, call: WrongCall, grad: bool) -> str | None:
    """What the call returned, in words; None if it was refused. error-messages checks the text of the refusal."""
    try:
        with torch.set_grad_enabled(grad):
            result = call.make(subject)
    except Exception:
        return None
    except SystemExit as error:
        raise Failure(f"a call with {call.what} ended the process, but should raise") from error
    results = result if isinstance(result, tuple | list) else [result]
    return "outputs of shape " + ", ".join(str(tuple(getattr(y, "shape", ()))) for y in results)


PROPERTY = Property(
    "rejects-wrong-calls", "wrong ranks, sizes, dtypes, devices and layouts raise", check, level=PYTORCH
)
