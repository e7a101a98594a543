"""Judge an implementation that runs in other processes: what it does there costs at most one cell.

A candidate runs in two processes of its own. One has imported nothing of this project; it returns tensors, and
properties that need only those are judged here, in a process that never imports the candidate. The other runs the
properties that look at the inside of PyTorch, and answers with their cells. Neither sends anything that could carry
code. A process that ended is started again for the next cell. Where several dtypes are asked, forks of the judge share
the first kind of properties (`harness.running.dividing`), each beside a process of the candidate.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from backends.base import TRITON_INTERPRETED
from harness.building.cache import expected_root
from harness.candidate import Candidate
from harness.errors import Broken, HarnessError, Unavailable, UsageError
from harness.executing.module_path import with_this_tree
from harness.judging import foreign_text, stored
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.remote import RunnerFailure
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report import schema
from harness.report.cell import FAIL, NOT_RUN, PASS, Cell
from harness.report.report import jsonable
from harness.running import dividing, foreseeing, forking, further_judge, inside_runner, launching, sandbox
from harness.running.candidate_process import CandidateProcess, Limits, answering, lost
from harness.running.further_judge import FurtherJudge, Task
from harness.running.runner_process import RunnerProcess
from harness.running.sanitizers import Sanitizers
from harness.running.selection import Selection, Slot, declarations

#: Characters of a reason, and of a text among the figures, that are taken over from another process.
_TEXT = 100_000
#: Processes that are at work at a time for each judge: itself or its candidate, and the inner process.
_AT_WORK = 2


class Isolation:
    """The processes of the implementation that is judged at present. Those of the one before have ended."""

    def __init__(
        self,
        selection: Selection,
        limits: Limits,
        extra: tuple[Property, ...] = (),
        choice: str = "auto",
        writable: tuple[Path, ...] = (),
    ) -> None:
        """`extra` are properties beyond those of `harness.properties`, `choice` a value of `--sandbox`.

        Candidates may also write to the folders `writable`.
        """
        self._selection, self._limits, self._extra = selection, limits, extra
        self._choice, self._writable = choice, writable
        self._properties = {**all_properties(), **{property.name: property for property in extra}}
        self._place: tuple[str, str] | None = None
        self._outside: CandidateProcess | None = None
        self._inside: RunnerProcess | None = None
        #: The process in which sanitizers watch what a candidate compiles.
        self._sanitized: CandidateProcess | None = None
        #: The file to which the inner process writes what it is about to do. It has no name, so none is ever left.
        self._trace: IO[bytes] | None = None
        #: The cells that a thread judges in the inner process, by slot and property.
        self._ahead: dict[tuple[str, str], Future[Cell]] = {}
        self._thread: threading.Thread | None = None
        self._forks: list[dividing.Fork | FurtherJudge] = []
        #: Held while the inner process is asked.
        self._one_asks = threading.Lock()

    def divide(self, asked: Sequence[tuple[Slot, str]], first: Collection[str], store: Path | None) -> bool:
        """Judge the cells of some dtypes in forks of the judge from now on, if there are cores for that.

        Returns whether there are forks. The properties `first` are judged in none, which takes its time to begin.
        `store` is the folder of expected results. Call it before `begin`, which starts a thread.
        """
        if not _is_one_place(asked):
            return False
        others = [
            (slot, property)
            for slot, property in asked
            if isinstance(slot.source, Candidate)
            and not ((found := self._properties[property]).once or found.large or found.sanitized or property in first)
        ]
        if forking.may_fork():
            outside = [(slot, property) for slot, property in others if self._properties[property].outside]
            parts = dividing.divided(outside, dividing.cores())
            elsewhere = {(slot.id, property) for part in parts for slot, property in part}
            kept = [
                (slot, self._properties[property]) for slot, property in outside if (slot.id, property) not in elsewhere
            ]
            self._forks = [
                dividing.Fork(part, lambda: self._in_fork(store), partial(_foresee, kept[number :: len(parts)], store))
                for number, part in enumerate(parts)
            ]
        elif further_judge.can_be():
            parts = dividing.divided(others, dividing.cores() // _AT_WORK)
            self._forks = [self._further(part, store) for part in parts]
        return bool(self._forks)

    def begin(self, asked: Sequence[tuple[Slot, str]]) -> None:
        """Judge those of the cells that the inner process judges from now on, in this order; `judge` waits for each.

        The two processes work at the same time then.
        """
        inner = [
            (slot, property)
            for slot, property in asked
            if isinstance(slot.source, Candidate)
            and not self._properties[property].outside
            and not any(fork.has(slot, property) for fork in self._forks)
        ]
        if not inner or not _is_one_place(asked):
            return
        self._turn_to(inner[0][0])  # here, since it ends what the thread has begun
        self._ahead = {(slot.id, property): Future() for slot, property in inner}
        self._thread = threading.Thread(target=self._judge_ahead, args=(inner, self._ahead), daemon=True)
        self._thread.start()

    def _judge_ahead(self, inner: Sequence[tuple[Slot, str]], found: dict[tuple[str, str], Future[Cell]]) -> None:
        for slot, property in inner:
            future = found[slot.id, property]
            if not future.set_running_or_notify_cancel():
                return
            try:
                cell = self._judged_there(slot, property)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(cell)

    def _in_fork(self, store: Path | None) -> Callable[[Slot, str], Cell]:
        """What judges a cell in a fork of the judge, beside processes of its own."""
        own = Isolation(self._selection, self._limits, self._extra, self._choice, self._writable)

        def judge(slot: Slot, property: str) -> Cell:
            with stored.used(store):
                return own.judge(slot, property)

        return judge

    def _further(self, part: Sequence[tuple[Slot, str]], store: Path | None) -> FurtherJudge:
        """A further judge, which cannot be a fork of this one."""
        task = Task(
            self._selection,
            self._limits,
            self._extra,
            self._choice,
            self._writable,
            store,
            {name: zygote.fileno() for name, zygote in launching.zygotes.items()},
            tuple((slot.id, property) for slot, property in part),
        )
        return FurtherJudge(part, task.as_text(), lambda: further_judge.process_of(task))

    def imports(self, slot: Slot) -> str:
        """Why the candidate cannot be imported; empty if it can. Raises UsageError if the function is not there."""
        try:
            declarations(self._process_of(slot).declared())
        except Broken as error:
            return str(error)
        return ""

    def judge(self, slot: Slot, property: str) -> Cell:
        """The cell; a `fail` if the process died or exceeded a limit. Raises HarnessError if the harness failed."""
        try:
            for fork in self._forks:
                if fork.has(slot, property) and (cell := fork.cell(slot, property)) is not None:
                    return cell
            if isinstance(slot.source, Candidate) and self._properties[property].outside:
                return self._judged_here(slot, self._properties[property])
            ahead = self._ahead.get((slot.id, property))
            return self._judged_there(slot, property) if ahead is None else ahead.result()
        except Unavailable as error:
            return slot.cell(property, NOT_RUN, str(error))

    def stop(self) -> None:
        """End the processes, if there are any, and remove their files. What was to be judged ahead is judged later."""
        forks, self._forks = self._forks, []
        for fork in forks:
            fork.stop()
        ahead, self._ahead = self._ahead, {}
        for future in reversed(ahead.values()):
            future.cancel()
        self._end_processes()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
            self._end_processes()  # it may have been about to start one
        self._outside = self._inside = self._sanitized = self._place = None
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _end_processes(self) -> None:
        for process in (self._outside, self._inside, self._sanitized):
            if process is not None:
                process.stop()

    def _turn_to(self, slot: Slot) -> None:
        """End the processes of another implementation: they hold memory, and could disturb this one."""
        text = slot.source.text if isinstance(slot.source, Candidate) else slot.backend
        if self._place != (text, slot.device):
            self.stop()
            self._place = (text, slot.device)

    def _process_of(self, slot: Slot) -> CandidateProcess:
        assert isinstance(slot.source, Candidate)
        self._turn_to(slot)
        if self._outside is None:
            slot.require_device()
            self._outside = CandidateProcess(slot.source, slot.device, self._limits, self._choice)
        self._outside.begin()
        return self._outside

    def _sanitized_process_of(self, slot: Slot) -> CandidateProcess:
        """Raises Unavailable if the compiler has no sanitizers."""
        assert isinstance(slot.source, Candidate)
        self._turn_to(slot)
        if self._sanitized is None:
            watched = Sanitizers(slot.source.text)
            self._sanitized = CandidateProcess(slot.source, slot.device, self._limits, self._choice, watched)
        self._sanitized.begin()
        return self._sanitized

    def _judged_here(self, slot: Slot, property: Property) -> Cell:
        assert isinstance(slot.source, Candidate)
        began = time.monotonic()
        process = self._sanitized_process_of(slot) if property.sanitized else self._process_of(slot)
        try:
            declared = declarations(process.declared())
        except Broken as error:
            return slot.cell(property.name, FAIL, str(error), time.monotonic() - began)
        function, place = process.function, (slot.operator, slot.backend, slot.device, slot.dtype)
        process.begin()
        subject = Subject(
            *place,
            function,
            declared,
            slot.source.text,
            examples=slot.examples,
            remote=function,
            files=slot.files(),
        )
        cell = judge(subject, property)
        return cell if process.sanitizers is None else _with_libraries(cell, process.sanitizers)

    def _judged_there(self, slot: Slot, property: str) -> Cell:
        """The cell by the inner process, which answers one thread at a time."""
        with self._one_asks:
            return self._asked_there(slot, property)

    def _asked_there(self, slot: Slot, property: str) -> Cell:
        self._turn_to(slot)
        began = time.monotonic()
        if self._inside is None or not self._inside.alive:
            self._inside = self._started(slot)
        trace = self._traced()
        trace.truncate(0)
        try:
            answer, _ = self._inside.ask({"slot": slot.id, "property": property}, seconds=self._limits.seconds)
            if answer.get("lost"):
                self._inside.stop()
                raise RunnerFailure(lost(answer["lost"]))
            if "trouble" in answer:
                raise HarnessError(str(answer["trouble"])[:_TEXT])
            return _cell(answer.get("cell"), slot, property)
        except RunnerFailure as error:
            how = str(error)
        trace.seek(0)
        call, _, script = trace.read(_TEXT).decode("utf-8", "replace").partition("\n")
        cell = slot.ended(property, how, time.monotonic() - began, call)
        return replace(cell, figures={**cell.figures, "reproducer": script}) if script else cell

    def _started(self, slot: Slot) -> RunnerProcess:
        """The inner process, which has imported the suite. Raises UsageError if it does not come up."""
        trace, boxed = self._traced().fileno(), isinstance(slot.source, Candidate) and sandbox.is_used(self._choice)
        begin = inside_runner.start(self._selected(slot), self._extra, trace, self._store(slot))
        try:
            started, answer = answering(lambda: self._launched(slot), {"begin": begin}, boxed)
        except RunnerFailure as error:
            raise HarnessError(f"the process that judges {error}: {error.said[-_TEXT:]}") from error
        if "trouble" in answer:
            started.stop()
            raise UsageError(str(answer["trouble"]))
        return started

    def _launched(self, slot: Slot) -> RunnerProcess:
        """An inner process that was asked nothing yet."""
        foreign = isinstance(slot.source, Candidate)
        folder = sandbox.scratch(slot.source.text) if isinstance(slot.source, Candidate) else Path.cwd()
        command = [sys.executable, "-P", "-m", inside_runner.__name__]
        environment = sandbox.environment(folder, slot.device) if foreign else dict(os.environ)
        return RunnerProcess(
            sandbox.command(command, folder, self._choice, self._writable) if foreign else command,
            folder,
            {**environment, "PYTHONPATH": with_this_tree(environment, str(Path.cwd()))},
            self._limits.memory,
            signal_offset=foreign and sandbox.is_used(self._choice),
            descriptors=(self._traced().fileno(),),
            of=launching.SUITE if foreign and slot.device != TRITON_INTERPRETED else "",
        )

    def _traced(self) -> IO[bytes]:
        if self._trace is None:
            self._trace = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the process lives
        return self._trace

    def _selected(self, slot: Slot) -> Selection:
        """What the inner process may judge: of candidates only this one, by complete paths. It has another folder."""
        if not isinstance(slot.source, Candidate):
            return self._selection
        places = tuple(path.resolve() for path in self._selection.spec_paths)
        return replace(self._selection, candidates=(slot.source.text,), backends=(), spec_paths=places)

    def _store(self, slot: Slot) -> Path | None:
        """The folder of expected results that the inner process may use."""
        foreign = isinstance(slot.source, Candidate)
        return expected_root() if not foreign and sandbox.is_used(self._choice) else None


def _is_one_place(asked: Sequence[tuple[Slot, str]]) -> bool:
    """Whether several processes may judge these cells at the same time: several implementations take turns."""
    return len({(slot.backend, slot.device) for slot, _ in asked}) == 1


def _foresee(asked: foreseeing.Asked, store: Path | None) -> None:
    """Compute expected results of these cells in a fork that has judged its own."""
    if store is not None:
        foreseeing.prepare(foreseeing.what_can_be_foreseen(asked), store)


def _with_libraries(cell: Cell, sanitizers: Sanitizers) -> Cell:
    """The cell with the names of the libraries that the sanitizers watched; `not-run` instead of a pass if none."""
    watched, others = sanitizers.libraries()
    figures = {**cell.figures, "watched": watched, **({"not watched": others} if others else {})}
    if cell.verdict != PASS or watched:
        return replace(cell, figures=figures)
    what = f"{', '.join(others)} was built without $CXX" if others else "the candidate compiled nothing in its process"
    return replace(cell, verdict=NOT_RUN, reason=f"{what}, so AddressSanitizer and UBSan had nothing to watch")


def _cell(record: Any, slot: Slot, property: str) -> Cell:
    """The cell from another process. Raises RunnerFailure if it is none, or about something else."""
    names = {field.name for field in fields(Cell)}
    found: Cell | None = None
    with contextlib.suppress(TypeError, ValueError, AttributeError):
        found = Cell(**{name: value for name, value in record.items() if name in names})
    asked = slot.cell(property, FAIL, "asked").key
    if found is None or found.key != asked:
        raise RunnerFailure("sent a cell that was not asked for")
    if not schema.is_cell(jsonable(record)):
        raise RunnerFailure("sent a cell that no report can hold")
    return replace(found, reason=foreign_text.message(found.reason[:_TEXT]))
