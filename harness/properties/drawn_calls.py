"""Outputs and gradients are right for calls that nobody thought of: hypothesis draws them, and shrinks what fails.

How many is set by `--examples`, and from which seed by `--examples-seed`: a fresh one each run unless it is given, the
same for all backends of a run, so that they share the oracles. Where a few draws happen to leave some gradient without
evidence, which an operator of one output does whenever its cotangent is zero or missing, as many are drawn again.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from harness.errors import Failure
from harness.judging.drawn_scenarios import scenarios
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally

#: How often calls are drawn, at most, until there is evidence for every tensor.
TURNS = 5


def check(subject: Subject) -> dict[str, Any]:
    """Draw calls and hold each against its oracle; the smallest that fails is the one that is told."""
    tally, examples = Tally(subject), subject.examples
    for turn in range(TURNS):
        _draw(tally, examples.count, examples.seed + turn)
        if not tally.blind():
            break
    return {**tally.figures(), "examples": examples.count * (turn + 1), "seed": examples.seed}


def _draw(tally: Tally, examples: int, first: int) -> None:
    @seed(first)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(scenarios(tally.subject.operator))
    def run(scenario: Scenario) -> None:
        tally.run(scenario)

    try:
        run()
    except Failure as failure:
        raise failure.adding(f"found by hypothesis among {examples} drawn calls, seed {first}") from None


PROPERTY = Property("drawn-calls", "right for whatever call hypothesis draws", check)
