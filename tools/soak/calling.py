"""One call: an implementation on a scenario, judged as in drawn-calls."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from harness.errors import Failure
from harness.judging.oracle import Expected
from harness.judging.scenario import Call, Scenario
from harness.judging.subject import Subject, one_line
from harness.judging.tally import Tally

#: What the suite says of a call. `no-evidence`: it suspects itself. `error`: it raises an error of its own.
PASS, FAIL, NO_EVIDENCE, ERROR = "pass", "fail", "no-evidence", "error"


@dataclass(frozen=True)
class Result:
    """The verdict of one call, and where its processor time went. `gradients`: whether at least one was compared."""

    verdict: str
    reason: str = ""
    tensor: str = ""
    gradients: bool = False
    calling: float = 0.0
    comparing: float = 0.0

    def is_like(self, other: Result) -> bool:
        """Whether it is the same alarm: the same verdict about the same tensor."""
        return (self.verdict, self.tensor) == (other.verdict, other.tensor)


class _Timed(Tally):
    """A tally that measures its comparisons and notes whether it compares gradients."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.comparing, self.gradients = 0.0, False

    def hold_all(
        self,
        scenario: Scenario,
        measure: Expected,
        outputs: Sequence[Tensor],
        gradients: Mapping[str, Tensor],
        call: Call | None = None,
    ) -> None:
        self.gradients = self.gradients or any(gradient.numel() > 0 for gradient in gradients.values())
        start = time.process_time()
        try:
            super().hold_all(scenario, measure, outputs, gradients, call)
        finally:
            self.comparing += time.process_time() - start


def call(subject: Subject, scenario: Scenario) -> Result:
    """Call the implementation once and compare what it returns. The oracle should be known: its time would count."""
    tally = _Timed(subject)
    verdict, reason, tensor, start = PASS, "", "", time.process_time()
    try:
        tally.run(scenario)
    except Failure as failure:
        verdict, reason, tensor = FAIL, str(failure), failure.tensor
    except Exception as error:  # a defect of the suite, which is what this looks for too
        verdict, reason = ERROR, one_line(error)
    if tally.suspected:
        verdict, reason = NO_EVIDENCE, f"the suite suspects itself: {tally.suspected[0]}"
    calling = time.process_time() - start - tally.comparing
    return Result(verdict, reason, tensor, tally.gradients, calling, tally.comparing)
