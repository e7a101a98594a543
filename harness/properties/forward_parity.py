"""The outputs agree with the contract within the allowance for rounding, at ordinary and at adversarial values."""

from __future__ import annotations

from typing import Any

from harness.judging.property import PARITY, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import at_edges, ordinary
from harness.judging.subject import Subject
from harness.judging.tally import OUTPUTS, Tally
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:
    """Outputs of the ordinary and the adversarial scenarios."""
    tally = Tally(subject, in_ulps=True)
    return tally.run_all(foreseen(subject), OUTPUTS)


def foreseen(subject: Subject) -> list[Scenario]:
    """The ordinary and the adversarial scenarios."""
    return [*ordinary(subject.operator), *at_edges(subject.operator)]


PROPERTY = Property(
    "forward-parity",
    "outputs agree with the reference",
    check,
    view=PARITY,
    level=VALUES,
    outside=True,
    foreseen=foreseen,
)
