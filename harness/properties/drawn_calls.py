"""Outputs and gradients are right for calls that nobody chose: hypothesis draws them, and shrinks one that fails.

`--examples` sets how many, `--examples-seed` the seed. All backends of a run get the same calls, so that they share the
oracles. If a few draws leave some gradient without evidence, as many are drawn again. That happens with an operator of
one output whenever its cotangent is zero or missing.

A call that fails is made again, to find a smaller one. A function whose results change from call to call may be right
then. Its first failure counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.errors import Ended, Failure
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.contract import Operator

#: How often calls are drawn, at most, until every tensor has evidence.
TURNS = 5


def check(subject: Subject) -> dict[str, Any]:
    """Draw calls and compare each with its oracle; the Failure shows the smallest call that fails."""
    tally, examples = Tally(subject), subject.examples
    for turn in range(TURNS):
        _draw(tally, examples.count, examples.seed + turn)
        if not tally.blind():
            break
    return {**tally.figures(), "examples": examples.count * (turn + 1), "seed": examples.seed}


def foreseen(subject: Subject) -> list[Scenario]:
    """The calls of the first turn: what is drawn does not depend on what a call returns, unless one fails."""
    drawn: list[Scenario] = []
    _drawn(subject.operator, subject.examples.count, subject.examples.seed, drawn.append)
    return drawn


def _draw(tally: Tally, examples: int, first: int) -> None:
    failures: list[Failure] = []

    def run(scenario: Scenario) -> None:
        if any(isinstance(failure, Ended) for failure in failures):
            return
        try:
            tally.run(scenario)
        except Failure as failure:
            failures.append(failure)
            if not isinstance(failure, Ended):
                raise

    found = _drawn(tally.subject.operator, examples, first, run)
    if failures:
        # That of the smallest call is the one that hypothesis raised, or the last one where it could not repeat it.
        failure = found or failures[-1]
        raise failure.adding(f"found by hypothesis among {examples} drawn calls, seed {first}") from None


def _drawn(operator: Operator, examples: int, first: int, run: Callable[[Scenario], None]) -> Failure | None:
    """Draw calls and `run` each; the Failure of the smallest one that fails each time, if there is any."""
    # Imported here, hypothesis costs no time before the first verdict. `bind` imports it before any candidate.
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from hypothesis.errors import FlakyFailure

    from harness.judging.drawn_scenarios import scenarios

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
    @given(scenarios(operator))
    def each(scenario: Scenario) -> None:
        run(scenario)

    try:
        each()
    except FlakyFailure as several:
        if not all(isinstance(error, Failure) for error in several.exceptions):
            raise
        return None  # a call that failed did not fail again
    except Failure as failure:
        return failure
    return None


PROPERTY = Property(
    "drawn-calls", "right for every call that hypothesis draws", check, level=VALUES, outside=True, foreseen=foreseen
)
