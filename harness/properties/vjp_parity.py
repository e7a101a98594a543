"""The gradients agree with the contract within the allowance for rounding."""

from __future__ import annotations

from typing import Any

from harness.judging.property import PARITY, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import at_edges, ordinary
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import GRADIENTS


def check(subject: Subject) -> dict[str, Any]:
    """Outputs and gradients of the ordinary and the adversarial scenarios."""
    tally = Tally(subject, in_ulps=True)
    return tally.run_all(foreseen(subject))


def foreseen(subject: Subject) -> list[Scenario]:
    """The ordinary and the adversarial scenarios."""
    return [*ordinary(subject.operator), *at_edges(subject.operator)]


PROPERTY = Property(
    "vjp-parity",
    "gradients agree with the closed-form VJP",
    check,
    view=PARITY,
    level=GRADIENTS,
    outside=True,
    foreseen=foreseen,
)
