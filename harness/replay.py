"""Run one call again, as the reproducer script of a failure does."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.errors import Failure
from harness.fuzzing.calls import HostileCall
from harness.fuzzing.outcome import judge_call
from harness.judging.scenario import Scenario
from harness.judging.tally import Tally
from harness.running.selection import Selection, slots


def replay(
    operator: str,
    device: str,
    dtype: str,
    scenario: Scenario | HostileCall,
    backend: str | None = None,
    candidate: str | None = None,
    form: str = "",
    contract: str = "",
) -> None:
    """Call one implementation with one scenario; print what is wrong and exit with 1, or print the result.

    `backend` is the name of one, or `candidate` is as for `--candidate`; `form` is a form of the operator.
    `contract` is the file of a contract outside of the suite, as for `--spec-path`.
    Raises UnknownName, Unavailable, Broken.
    """
    selection = Selection(
        operators=(operator,),
        backends=(backend,) if backend else (),
        candidates=(candidate,) if candidate else (),
        devices=(device,),
        dtypes=(dtype,),
        spec_paths=(Path(contract),) if contract else (),
    )
    (slot,) = slots(selection)
    subject = slot.subject()
    subject = subject.in_form(subject.operator.in_form(form) if form else subject.operator)
    try:
        if isinstance(scenario, Scenario):
            Tally(subject).run(scenario)
            outcome = "holds"
        else:
            outcome = judge_call(subject, scenario)
    except Failure as failure:
        print(failure)
        sys.exit(1)
    print(f"{outcome}: {scenario.describe(subject.operator)}")
