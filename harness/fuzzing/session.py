"""A session: hypothesis draws hostile calls of each function until its time is used, in a process of its own.

hypothesis shrinks what it finds, keeps it in a folder, and tries it first the next time. A crash cannot be shrunk,
because it ends hypothesis too. But its call is known, since each call is written down before it is made.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from backends.base import CompiledOperator
from harness.discovery import FoundBackend
from harness.errors import Failure, HarnessError, UsageError
from harness.fuzzing.calls import HostileCall, hostile_calls, one_at_a_time
from harness.fuzzing.outcome import judge_call
from harness.fuzzing.spoiling import Impossible
from harness.judging import judge as judging
from harness.judging import traced
from harness.judging.property import Property
from harness.judging.reproducer import script
from harness.judging.subject import Subject
from harness.report.cell import NO_EVIDENCE, Cell
from harness.report.report import Report
from harness.running import environment, suite
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, Slot, slots

#: Calls that hypothesis draws between two checks of the clock.
_TURN = 50
#: Seconds that one function may take beyond its share; after them it counts as hanging.
_GRACE = 300.0


NAME = "hostile-calls"


@dataclass(frozen=True)
class Fuzzing:
    """The check: hostile calls for `seconds`, from `seed`, `examples` at a time; `folder` keeps what failed.

    Before any is drawn, each argument is spoilt in each way, in at most half of the time. `larger` are sizes that one
    dimension has in half of the calls.
    """

    seconds: float = 0.0
    seed: int = 0
    examples: int = _TURN
    folder: str = ""
    larger: tuple[int, ...] = ()

    def __call__(self, subject: Subject) -> dict[str, Any]:
        """Draw hostile calls until the time is used; returns how many, and counts of their results."""
        came_out: Counter[str] = Counter()
        begin = time.monotonic()
        end = begin + self.seconds
        for call in one_at_a_time(subject.operator):
            if time.monotonic() - begin > self.seconds / 2:
                break
            with suppress(Impossible):
                _judge(subject, call, came_out)
        turn = 0
        while turn == 0 or time.monotonic() < end:
            _draw(self, subject, self.seed + turn, came_out)
            turn += 1
        return {"calls": came_out.total(), "came out": dict(came_out), "seed": self.seed}

    @property
    def property(self) -> Property:
        """The property that this check belongs to."""
        return Property(NAME, "any call is refused cleanly or answered right, and nothing crashes", self)


def _judge(subject: Subject, call: HostileCall, came_out: Counter[str]) -> None:
    """Count how the call came out. Raises Failure with a script, or Impossible."""
    words = call.describe(subject.operator)
    traced.write_down(words, script(subject, call, words))
    try:
        came_out[judge_call(subject, call)] += 1
    except Failure as failure:
        raise failure.adding(reproducer=script(subject, call, str(failure))) from failure


def _draw(fuzzing: Fuzzing, subject: Subject, first: int, came_out: Counter[str]) -> None:
    @seed(first)
    @settings(
        max_examples=fuzzing.examples,
        deadline=None,
        database=DirectoryBasedExampleDatabase(fuzzing.folder) if fuzzing.folder else None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(hostile_calls(subject.operator, fuzzing.larger))
    def run(call: HostileCall) -> None:
        try:
            _judge(subject, call, came_out)
        except Impossible:
            assume(False)

    run()


def chosen(selection: Selection) -> list[Slot]:
    """Candidates and compiled backends, and backends in Python that were named. Raises UsageError if there is none."""
    found = [slot for slot in slots(selection) if _is_wanted(slot, selection)]
    if not found:
        raise UsageError("nothing to fuzz: no compiled backend or candidate is among what was selected")
    return found


def _is_wanted(slot: Slot, selection: Selection) -> bool:
    if slot.backend in selection.backends or not isinstance(slot.source, FoundBackend):
        return True
    if slot.operator.name in slot.source.backend.absent:
        return False
    return isinstance(slot.source.implementation(slot.operator.name), CompiledOperator)


def run(selection: Selection, seconds: float, first: int, folder: Path | None, larger: tuple[int, ...] = ()) -> Report:
    """Fuzz each function for its share of `seconds`; a finding ends its process only. Raises UsageError."""
    found = chosen(selection)
    judging.bind()
    share = seconds / len(found)
    fuzzing = Fuzzing(share, first, folder=str(folder) if folder else "", larger=larger)
    isolation = Isolation(selection, Limits(seconds=share + _GRACE), (fuzzing.property,))
    try:
        return Report.of(_cells(found, isolation), environment.describe(), suite.describe())
    finally:
        isolation.stop()


def _cells(found: Sequence[Slot], isolation: Isolation) -> list[Cell]:
    cells = []
    for slot in found:
        try:
            cell = isolation.judge(slot, NAME)
        except HarnessError as error:
            cell = slot.cell(NAME, NO_EVIDENCE, f"the harness itself failed: {error}")
        print(f"{cell.verdict:>12}  {slot.id}  {cell.figures.get('calls', '')}", flush=True)
        cells.append(cell)
    return cells
