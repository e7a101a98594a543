"""The record of a run in progress: what is to be judged, the cells so far, and the file that holds them.

The file is rewritten every few seconds. A run that is killed therefore loses only its last seconds; what it leaves is
a report marked as partial. `--resume` continues such a report: it keeps its cells and judges the others.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness.candidate import Candidate
from harness.discovery import FoundBackend
from harness.errors import UsageError
from harness.pytest_plugin import names
from harness.pytest_plugin.report_lock import ReportLock
from harness.report.cell import CUT_OFF, Cell
from harness.report.levels import PRODUCTION
from harness.report.report import Report, jsonable, one_each, refuse_other_files
from harness.report.shards import RunPlan, Shard, digest_of, digest_of_files, sources
from harness.running import candidate_files, environment, suite
from harness.running.selection import Selection, Slot

#: The least number of seconds between two writes of the file, and the least ratio of that pause to a write's duration.
_PAUSE, _SHARE = 5.0, 50.0
#: Facts that may differ between two runs on one machine, because no verdict depends on them: the time; the number of
#: torch's threads when the report was written; and whether a file differs from the commit (the plan has its digest).
_NOT_THE_MACHINE = frozenset({"time", "threads", "dirty"})


def plan_of(config: pytest.Config, selection: Selection, found: Sequence[Slot]) -> RunPlan:
    """The plan of this command line. Command lines that select the same have the same digest, on any machine."""
    option, root = config.option, Path(config.rootpath)
    asked = [slot.id for slot in found]
    asked += [_relative(text, root) for text in config.args]
    asked += [f"{name}={getattr(option, name, '')}" for name in ("keyword", "markexpr", "deselect", "ignore")]
    asked += [f"examples={option.examples}", f"isolate={option.isolate}", f"sanitize={option.sanitize}"]
    asked += [f"property={name}" for name in sorted(set(option.property))]
    asked += [name for name in ("quick", "divide") if getattr(option, name)]
    asked.append(digest_of_files(_from_elsewhere(selection, found)))
    part = Shard.parse(option.shard)
    return RunPlan(digest_of(asked), sources(), part.count, begun=(part.number,))


def _relative(text: str, root: Path) -> str:
    """A file or test of the command line, relative to the root, so that it reads the same on any machine."""
    file, colons, test = text.partition("::")
    path = Path(file).resolve()
    name = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
    return f"{name}{colons}{test}"


def _from_elsewhere(selection: Selection, found: Sequence[Slot]) -> list[Path]:
    """The files and folders of candidates, contracts and backends that do not belong to the suite."""
    own = Path(__file__).parents[2]
    paths = [path.resolve() for path in selection.spec_paths]
    for source in {slot.backend: slot.source for slot in found}.values():
        if isinstance(source, FoundBackend):
            paths.append(Path(str(source.package.__file__)).parent)
        elif isinstance(source, Candidate):
            paths.append(candidate_files.file_of(source.where))
    return sorted({path for path in paths if path.exists() and not path.is_relative_to(own / "backends")})


@dataclass
class Record:
    """The cells of a run so far, and the file for them. `asked` and `done` are names of tests."""

    path: Path
    plan: RunPlan
    required: str = PRODUCTION
    cells: list[Cell] = field(default_factory=list)
    #: Cells that were known before the run: candidates that cannot be imported.
    known: tuple[Cell, ...] = ()
    #: What kept candidates from the rest of the machine; None if none was judged.
    sandbox: str | None = None
    #: The properties that a quick run leaves out; None if the run is not quick.
    left_out: tuple[str, ...] | None = None
    #: The files of the candidates, see `harness.running.candidate_files`.
    candidates: candidate_files.Files = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    done: frozenset[str] = frozenset()
    #: Held until the report is whole.
    lock: ReportLock | None = None
    _judged: set[str] = field(default_factory=set)
    _environment: dict[str, Any] | None = None
    _next: float = 0.0

    @classmethod
    def begin(cls, path: Path, plan: RunPlan, earlier: Path | None, required: str = PRODUCTION) -> Record:
        """Continue the earlier report, if there is one.

        `required` is the last level that decides the exit code; the earlier run may have required another.

        Raises UsageError if `path` holds something other than a report, cannot be written to, or is being written by
        another run, and if the earlier report is malformed, complete, or of another machine, suite or selection. Then
        nothing is changed.
        """
        found = None if earlier is None else _resumed(earlier, plan)
        lock = ReportLock(path)
        _make_room(path, lock)
        record = cls(path, plan, required, lock=lock)
        if found is not None:
            record.cells = [cell for cell in found.cells if CUT_OFF not in cell.figures]
            record.done = frozenset(map(names.of_cell, record.cells))
            record.asked, record._judged = set(record.done), set(record.done)
        return record

    def ask(self, name: str) -> None:
        """A test of this run. The report of an earlier one goes: if this run dies, nobody must take it for its own."""
        if not self.asked and not self._judged:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
        self.asked.add(name)

    def add(self, cells: Sequence[Cell]) -> None:
        """The cells of a test; the file is written if the last write is long enough ago.

        Only their own names count as judged: a test whose cell is about something else has left its question open.
        """
        self.cells += cells
        self._judged.update(map(names.of_cell, cells))
        if time.monotonic() >= self._next:
            self.save()

    def save(self) -> None:
        """Write the partial report. An error is ignored here: the last write, at the end of the run, reports it."""
        began = time.monotonic()
        self._environment = self._environment or environment.describe()
        with contextlib.suppress(OSError):
            self._report(self._environment, finished=False).write(self.path)
        self._next = time.monotonic() + max(_PAUSE, _SHARE * (time.monotonic() - began))

    def end(self, interrupted: bool) -> Report:
        """The report of the whole run, written. Raises OSError."""
        cut_off = {names.of_cell(cell) for cell in self.cells if CUT_OFF in cell.figures}
        finished = not interrupted and self.asked <= self._judged - cut_off
        report = self._report(environment.describe(), finished)
        report.write(self.path)
        self.close()
        return report

    def close(self) -> None:
        """Let other runs write this report."""
        if self.lock is not None:
            self.lock.release()

    def _report(self, facts: dict[str, Any], finished: bool) -> Report:
        asked = self.asked | self._judged | {names.of_cell(cell) for cell in self.known}
        plan = replace(self.plan, asked=len(asked), finished=self.plan.begun if finished else ())
        if self.sandbox is not None:
            facts = {**facts, "sandbox": self.sandbox}
        if self.left_out is not None:
            facts = {**facts, "quick": list(self.left_out)}
        if self.candidates:
            facts = {**facts, "candidates": self.candidates}
        cells = one_each([*self.cells, *self.known])
        return Report(facts, not plan.missing, cells, plan, suite.describe(), self.required)


def _make_room(path: Path, lock: ReportLock) -> None:
    """Make sure that the report can be written, and by this run alone. An earlier report stays for now."""
    try:
        refuse_other_files("--report", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.take()
        path.with_name(f".{path.name}.writable").touch()
        path.with_name(f".{path.name}.writable").unlink()
    except (OSError, ValueError) as error:
        raise UsageError(f"--report {path} cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _resumed(path: Path, plan: RunPlan) -> Report:
    found = Report.read(path)
    then = found.plan
    if then is None:
        raise UsageError(f"--resume {path} has no plan, so its missing cells are unknown; judge anew without --resume")
    if then.begun != plan.begun or then.shards != plan.shards:
        parts = [part.in_words() or "no shard" for part in (then, plan)]
        raise UsageError(f"--resume {path} is {parts[0]}, but this run is {parts[1]}: give it the same --shard")
    if then.finished == then.begun:
        raise UsageError(f"--resume {path} lacks nothing: that run is complete; judge anew without --resume")
    if then.sources != plan.sources:
        raise UsageError(f"--resume {path} is of another state of the suite: its files have changed; judge anew")
    if then.digest != plan.digest:
        raise UsageError(
            f"--resume {path} is of another selection: give the options and candidates that it was made with"
        )
    here = jsonable(environment.describe())
    for fact, was in found.environment.items():
        if fact not in _NOT_THE_MACHINE and fact in here and here[fact] != was:
            raise UsageError(
                f"--resume {path} is of another machine or software: {fact} was {was!r} and is {here[fact]!r}"
            )
    return found
