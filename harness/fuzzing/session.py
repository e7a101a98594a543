"""A session: hypothesis draws hostile calls at each function until its time is used, in a process of its own.

What hypothesis finds it shrinks, keeps in a folder, and tries first the next time. A crash cannot be shrunk, as it
takes hypothesis with it; the call is known all the same, since it is written down before it is made.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from backends.base import CompiledOperator
from harness import judge as court
from harness.discovery import FoundBackend
from harness.drawing import PLAN
from harness.errors import Failure, HarnessError, UsageError
from harness.fuzzing.calls import HostileCall, hostile_calls
from harness.fuzzing.outcome import judge_call
from harness.fuzzing.spoiling import Impossible
from harness.isolation import Isolation, Limits
from harness.judge import NO_EVIDENCE, Cell, Property
from harness.options import Selection, Slot, slots
from harness.report import Report
from harness.subject import Subject

#: Calls that hypothesis draws at a time, between two looks at the clock.
_TURN = 50
#: Seconds of one function above its share, after which it hangs.
_GRACE = 300.0


def check(subject: Subject) -> dict[str, Any]:
    """Draw hostile calls until the time is used: how many, and how they came out."""
    came_out: Counter[str] = Counter()
    end = time.monotonic() + PLAN.seconds
    turn = 0
    while turn == 0 or time.monotonic() < end:
        _draw(subject, PLAN.seed + turn, min(PLAN.examples, _TURN), came_out)
        turn += 1
    return {"calls": came_out.total(), "came out": dict(came_out), "seed": PLAN.seed}


FUZZ = Property(
    "hostile-calls", "whatever is passed is refused cleanly or answered rightly, and nothing crashes", check
)


def _draw(subject: Subject, first: int, examples: int, came_out: Counter[str]) -> None:
    failed: list[HostileCall] = []

    @seed(first)
    @settings(
        max_examples=examples,
        deadline=None,
        database=DirectoryBasedExampleDatabase(PLAN.folder) if PLAN.folder else None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.reuse, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(hostile_calls(subject.operator))
    def run(call: HostileCall) -> None:
        _write_down(subject, call)
        try:
            came_out[judge_call(subject, call)] += 1
        except Impossible:
            assume(False)
        except Failure:
            failed.append(call)
            raise

    try:
        run()
    except Failure as failure:
        failure.script = script(subject, failed[-1])
        raise


def _write_down(subject: Subject, call: HostileCall) -> None:
    if PLAN.trace:
        Path(PLAN.trace).write_text(f"{call.describe(subject.operator)}\n{script(subject, call)}")


def script(subject: Subject, call: HostileCall) -> str:
    """A Python script that makes the call again, alone."""
    who = "candidate" if subject.source else "backend"
    form = f"    form={subject.operator.form!r},\n" if subject.operator.form else ""
    return (
        "from harness.fuzzing.calls import HostileCall\nfrom harness.fuzzing.session import replay\n\n"
        f"call = {call!r}\n"
        f"replay(\n    operator={subject.operator.name!r},\n{form}    {who}={subject.source or subject.backend!r},\n"
        f"    device={subject.device!r},\n    dtype={subject.dtype_name!r},\n    call=call,\n)\n"
    )


def replay(
    operator: str,
    device: str,
    dtype: str,
    call: HostileCall,
    backend: str | None = None,
    candidate: str | None = None,
    form: str = "",
) -> None:
    """Make one call again; print what is wrong and exit with 1, or say how it came out."""
    place = Selection(operators=(operator,), devices=(device,), dtypes=(dtype,))
    backends, candidates = (backend,) if backend else (), (candidate,) if candidate else ()
    (slot,) = slots(replace(place, backends=backends, candidates=candidates))
    subject = slot.subject()
    subject = subject.in_form(subject.operator.in_form(form) if form else subject.operator)
    try:
        print(f"{judge_call(subject, call)}: {call.describe(subject.operator)}")
    except Failure as failure:
        print(failure)
        sys.exit(1)


def chosen(selection: Selection) -> list[Slot]:
    """Candidates and compiled backends; a backend in Python only if it was asked for by name."""
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


def run(selection: Selection, seconds: float, first: int, folder: Path | None) -> Report:
    """Fuzz each place for its share of `seconds`; a finding costs one process. Raises UsageError."""
    found = chosen(selection)
    court.bind()
    share = seconds / len(found)
    PLAN.seconds, PLAN.examples, PLAN.seed, PLAN.folder = share, _TURN, first, str(folder) if folder else ""
    isolation = Isolation(replace(selection), Limits(seconds=share + _GRACE))
    try:
        return Report.of(_cells(found, isolation))
    finally:
        isolation.stop()


def _cells(found: Sequence[Slot], isolation: Isolation) -> list[Cell]:
    cells = []
    for slot in found:
        try:
            cell = isolation.judge(slot, FUZZ.name)
        except HarnessError as error:
            cell = slot.cell(FUZZ.name, NO_EVIDENCE, f"the harness itself failed: {error}")
        print(f"{cell.verdict:>12}  {slot.id}  {cell.figures.get('calls', '')}", flush=True)
        cells.append(cell)
    return cells
