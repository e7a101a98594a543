"""Outputs and gradients are right in the lines of its Python files that ordinary calls do not reach.

The ordinary calls and those of `combinations` are made first, then calls that are steered to what none has reached:
see `judging.guided`. Values are compared for each call that reached something new. The cell fails only if one is wrong.
Lines that remain unreached are in its figures: `unreached`.

What ran is the word of the candidate's process, which may be false. So it never makes a verdict better: it chooses
which values are compared beside those of all other properties. A candidate that turns off tracing, so that nothing is
known, has the values of every call compared.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from harness.errors import Failure, NotApplicable, NotTaken
from harness.executing.watching import Watcher
from harness.judging.combinations import WITHOUT_GRAD, combinations_of, without_grad
from harness.judging.constants import reached as named_by
from harness.judging.guided import Mutations, swept
from harness.judging.lines import Line, Reached
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.remote import BranchWatch
from harness.judging.reproducer import script
from harness.judging.scenario import Scenario
from harness.judging.scenarios import ordinary, smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES

#: Steered calls at most, and calls whose values are compared at most. No clock ends the search: the verdict of a loaded
#: machine is that of an idle one.
STEERED, COMPARED = 160, 80
#: Unreached lines that the figures name.
NAMED = 20


@dataclass
class _Search:
    """The calls so far: what they reached, and those that reached something new."""

    subject: Subject
    tally: Tally
    watch: BranchWatch
    reached: Reached
    corpus: list[Scenario] = field(default_factory=list)
    calls: int = 0

    def note_other_forms(self) -> None:
        """Make a call in each other form of the operator: what only those reach is not looked for in this one."""
        subject = replace(self.subject, function=self.subject.raw or self.subject.function)
        for form in (subject.whole or subject.operator).every_form():
            if form.form != subject.operator.form:
                other = subject.in_form(form)
                scenario = smallest(form)
                call = other.realise(scenario)
                with suppress(Failure), self.watch.watching():  # that form has checks of its own
                    other.gradients(call, other.outputs(call, scenario), scenario)
        self.reached.add(self.watch.news())

    def make(self, scenario: Scenario) -> None:
        """Make a call; compare its values if it ran a new branch. Raises Failure with a reproducer."""
        subject = self.subject
        call = subject.realise(scenario)
        try:
            with self.watch.watching():
                subject.gradients(call, subject.outputs(call, scenario), scenario)
        except Failure as failure:
            if self._is_taken(scenario):
                raise failure.adding(reproducer=script(subject, scenario, str(failure))) from failure
        with self._noting(scenario) as new:
            if new or self.watch.disturbed or not self.corpus:
                self.tally.run(scenario)

    def _is_taken(self, scenario: Scenario) -> bool:
        """Whether the reference takes such a call."""
        try:
            expected(self.subject.operator, scenario, self.subject.dtype)
        except NotTaken:
            return False
        return True

    def make_without_grad(self, scenario: Scenario, mode: str) -> None:
        """The same in a mode without grad; nothing requires grad either. Raises Failure."""
        scenario = replace(scenario, wanted=(), name=f"{scenario.name}, {mode}")
        call = self.subject.realise(scenario)
        with self.watch.watching(), without_grad(mode):
            outputs = self.subject.outputs(call, scenario)
        with self._noting(scenario) as new:
            if new or self.watch.disturbed:
                measure = expected(self.subject.operator, scenario, self.subject.dtype)
                self.tally.hold_all(scenario, measure, outputs, {})

    @contextmanager
    def _noting(self, scenario: Scenario) -> Iterator[list[Line]]:
        """Take note of a call that was made; yields the ends of its new branches. A Failure within says the first."""
        self.calls += 1
        new = self.reached.add(self.watch.news())
        try:
            yield new
        except Failure as failure:
            if new and self.calls > 1:
                where = new[0].in_words()
                raise failure.adding(f"it is the first of {self.calls} calls that took the branch to {where}") from None
            raise
        if new or self.watch.disturbed or not self.corpus:
            self.corpus.append(scenario)

    def is_over(self) -> bool:
        """Whether nothing is left to be reached, or the calls are used up."""
        known = not self.watch.disturbed
        return len(self.corpus) >= COMPARED or (known and not self.reached.unreached())


def check(subject: Subject) -> dict[str, Any]:
    """Ordinary calls, then steered ones until all is reached; the figures name what is not."""
    if subject.files is None:
        raise NotApplicable("its source is not known: a function of a notebook, or one that is made at run time")
    reached = Reached(path for path in named_by(subject.files) if path.suffix == ".py")
    if not reached.files:
        raise NotApplicable("its source has no Python file")
    if subject.remote is None and sys.gettrace() is not None:
        raise NotApplicable("another tracer runs in this process, a debugger or a measurement of coverage")
    watch = subject.remote.watch(reached.files) if subject.remote else Watcher(reached.files)
    search = _Search(subject, Tally(subject), watch, reached)
    search.make(smallest(subject.operator))
    if not reached.count and not watch.disturbed:
        raise NotApplicable("no line of a Python function of its files ran: it is compiled")
    search.note_other_forms()
    for mode in WITHOUT_GRAD:
        search.make_without_grad(smallest(subject.operator), mode)
    for scenario in _calls(search):
        if search.is_over():
            break
        with suppress(NotTaken):
            search.make(scenario)
    return {**search.tally.figures(), "calls": search.calls, **_shown(reached, watch)}


def _calls(search: _Search) -> Iterator[Scenario]:
    """The calls with grad: those that nothing steers, then steered ones."""
    operator = search.subject.operator
    yield from ordinary(operator)
    yield from swept(operator)
    for call in combinations_of(search.subject.whole or operator).calls:
        if call.form == operator.form:
            yield call.scenario
    mutations = Mutations(operator, search.subject.examples.seed)
    for _ in range(STEERED):
        yield mutations.of(search.corpus)


def _shown(reached: Reached, watch: BranchWatch) -> dict[str, Any]:
    found = reached.unreached()
    figures: dict[str, Any] = {"lines": reached.count, "unreached_lines": len(found)}
    if found:
        figures["unreached"] = [asdict(line) for line in found[:NAMED]]
    return {**figures, "tracing": "turned off by a call"} if watch.disturbed else figures


PROPERTY = Property(
    "unreached-code",
    "right in the lines of its Python files that ordinary calls do not reach",
    check,
    level=VALUES,
    outside=True,
    dtypes=("float32",),
    why_only="the lines are the same in every dtype",
)
