"""Any subset of inputs may require grad and any subset of outputs may be used: the wanted gradients are right."""

from __future__ import annotations

from typing import Any

from harness.errors import Failure
from harness.judging.near import run_near
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import beside_values, of_subsets
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import GRADIENTS


def check(subject: Subject) -> dict[str, Any]:
    """All subsets. If no input requires grad, no output may require it.

    Then every proper subset beside each input whose values have something in common: of each kind, or, where these are
    too many calls, of another kind each time.
    """
    tally = Tally(subject)
    for scenario in foreseen(subject):
        tally.run(scenario)
        if scenario.wanted == ():
            outputs = subject.outputs(subject.realise(scenario), scenario)
            for arg, output in zip(subject.operator.outputs, outputs, strict=True):
                if output.requires_grad:
                    where = f"[{scenario.describe(subject.operator)}]"
                    raise Failure(f"{arg.name} requires grad, but should not: no input does {where}")
    for scenario in subject.shared(beside_values(subject.operator)):
        run_near(tally, scenario)
    return tally.figures()


def foreseen(subject: Subject) -> list[Scenario]:
    """All subsets."""
    return list(subject.shared(of_subsets(subject.operator)))


PROPERTY = Property(
    "gradient-subsets",
    "right for every subset of requires_grad and of used outputs",
    check,
    level=GRADIENTS,
    outside=True,
    divisible=True,
    foreseen=foreseen,
)
