"""torch.autograd.gradcheck: the gradients are the derivatives of the outputs that the candidate itself returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError

from harness.errors import Failure, NotApplicable
from harness.judging.property import GRADCHECK, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import tagged
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.report.levels import GRADIENTS


def check(subject: Subject) -> dict[str, Any]:
    """Numerical against analytical Jacobian in float64, on every small case."""
    if not subject.operator.is_derivative:
        raise NotApplicable(
            f"the gradient of {subject.operator.title} is chosen: its contract says it is no derivative"
        )
    cases = tagged(subject.operator, "small")
    for case in cases:
        scenario = Scenario.of(case)
        inputs = subject.realise(scenario).inputs
        try:
            torch.autograd.gradcheck(_real_results(subject), inputs)
        except CANDIDATE_ERRORS as error:
            raise Failure(
                f"gradcheck rejects the gradients [{scenario.describe(subject.operator)}]: {_quoted(error)}"
            ) from error
    return {"cases": [case.name for case in cases]}


def _real_results(subject: Subject) -> Callable[..., Any]:
    """The function without its integers and truth values, of which gradcheck takes differences."""
    if all(arg.is_floating for arg in subject.operator.outputs):
        return subject.function

    def real(*inputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(y for y in subject.function(*inputs) if y.is_floating_point())

    return real


def _quoted(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return "\n".join(lines[:12]) if isinstance(error, GradcheckError) else one_line(error)


PROPERTY = Property(
    "gradcheck",
    "torch.autograd.gradcheck accepts the gradients (float64)",
    check,
    view=GRADCHECK,
    level=GRADIENTS,
    outside=True,
    dtypes=("float64",),
    why_only="numerical differentiation needs float64; vjp-parity judges every dtype",
)
