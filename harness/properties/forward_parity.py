"""The outputs are the contract's, within what rounding explains, at ordinary and at adversarial values."""

from __future__ import annotations

from typing import Any

from harness.judge import Property
from harness.parity import OUTPUTS, Tally
from harness.scenarios import at_edges, ordinary
from harness.subject import Subject


def check(subject: Subject) -> dict[str, Any]:
    """Outputs of the ordinary and the adversarial scenarios."""
    tally = Tally(subject, in_ulps=True)
    return tally.run_all([*ordinary(subject.operator), *at_edges(subject.operator)], OUTPUTS)


PROPERTY = Property("forward-parity", "outputs agree with the reference", check)
