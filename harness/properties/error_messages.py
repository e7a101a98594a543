"""The error of a refused call names the argument, what it was, and what it should be."""

from __future__ import annotations

from typing import Any

from harness.errors import Failure
from harness.judging.property import Property
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject, one_line
from harness.judging.wrong_calls import message_lacks, wrong_calls
from harness.report.levels import PYTORCH


def check(subject: Subject) -> dict[str, Any]:
    """The message of every wrong call of the contract that the candidate refuses."""
    scenario = smallest(subject.operator)
    sizes = dict(scenario.sizes)
    inputs = tuple(tensor.detach() for tensor in subject.realise(scenario).inputs)
    count = 0
    for call in wrong_calls(subject.operator, sizes, inputs):
        try:
            call.make(subject)
        except Exception as error:
            lacks = message_lacks(subject.operator, sizes, call, str(error))
            if lacks:
                raise Failure(
                    f"the error for a call with {call.what} was «{one_line(error)}», but should {' and '.join(lacks)}"
                ) from error
            count += 1
    return {"messages": count}


PROPERTY = Property(
    "error-messages", "errors name the argument, what it was and what it should be", check, level=PYTORCH
)
