"""The part of the pytest plugin that runs in the controller: it collects cells and writes the report."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import FrameType
from typing import Any

import pytest

from harness.properties import all_properties
from harness.pytest_plugin import names
from harness.pytest_plugin.partial_report import Record
from harness.rendering import tables
from harness.report.cell import FAIL, Cell
from harness.report.levels import exit_reason
from harness.report.report import Report
from harness.running import suite_files
from harness.running.selection import Slot

_DIED = (
    "the process died while this was judged: a crash in compiled code, a call in it that did not return in time, an "
    "exit, or no memory left"
)
#: How many tests are of other shards; the name of it in what a worker hands to the controller.
ELSEWHERE, ELSEWHERE_NAME = pytest.StashKey[int](), "elsewhere"
#: Signals that end a process by default.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP)


class Recorder:
    """From pytest's hooks to the record. `begin` starts it and returns all slots of the run; may raise UsageError.

    `is_judging` says whether the command line asks for cells: a run without any is then told why.
    """

    def __init__(
        self,
        config: pytest.Config,
        begin: Callable[[], tuple[Record, list[Slot]]],
        cells_of: Callable[[pytest.TestReport], list[Cell]],
        is_judging: bool,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """`files` are digests of the suite's files before the first foreign code ran; None if none runs."""
        self._begin, self._cells_of, self._is_judging, self._files = begin, cells_of, is_judging, files
        self._interrupted = self._is_elsewhere = False
        self._report: Report | None = None
        self._trouble = self._why_red = ""
        _end_like_an_interrupt(config)

    @cached_property
    def _begun(self) -> tuple[Record, dict[str, Slot]]:
        record, slots = self._begin()
        return record, {slot.id: slot for slot in slots}

    @property
    def record(self) -> Record:
        """The record; the first use begins it."""
        return self._begun[0]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._asked(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:  # noqa: ARG002
        self._asked(ids)

    def _asked(self, ids: Iterable[str]) -> None:
        tests = {names.test_of(name) for name in all_properties()}
        for name in map(names.of_node, ids):
            test, slot_id = names.parts(name)
            if test in tests and slot_id in self._begun[1]:
                self.record.ask(name)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        self._is_elsewhere |= bool(getattr(node, "workeroutput", {}).get(ELSEWHERE_NAME))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = names.of_node(report.nodeid)
        if report.when == "call":
            cells = self._cells_of(report)
        elif str(report.when) == "???":  # xdist's word for a worker that died
            cells = self._of_a_death(name, _DIED)
        else:
            return
        if cells:
            self.record.add(cells)

    def hangs(self, nodeid: str) -> None:
        """Keep what there is of a run that is about to end, and say which test hangs: `--resume` leaves it out."""
        if "_begun" not in vars(self):
            return
        cells = self._of_a_death(names.of_node(nodeid), "it hangs: a call in compiled code did not return in time")
        if cells:
            self.record.add(cells)
            self.record.save()

    def _of_a_death(self, name: str, why: str) -> list[Cell]:
        test, slot_id = names.parts(name)
        slot = self._begun[1].get(slot_id)
        return [] if slot is None else [slot.cell(names.property_of(test), FAIL, why)]

    def pytest_keyboard_interrupt(self) -> None:
        """Save what there is, before anything else can go wrong."""
        self._interrupted = True
        _ignore_endings()
        if "_begun" in vars(self):
            self.record.save()

    def pytest_internalerror(self) -> None:
        self._interrupted = True

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # -x and --maxfail leave cells out too.
        self._interrupted |= bool(session.shouldfail or session.shouldstop)
        self._is_elsewhere |= bool(session.config.stash.get(ELSEWHERE, 0))
        is_empty = "_begun" not in vars(self) or not (self.record.cells or self.record.asked or self.record.known)
        if is_empty and not (self._is_judging and self._is_elsewhere):
            if self._is_judging and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
                self._why_red = _nothing_selected(session.config)
            return
        changed = [] if self._files is None else suite_files.changed(self._files, suite_files.digests())
        if changed:
            self._trouble = (
                f"files of the suite changed while a candidate was judged: {', '.join(changed[:5])}; "
                "this report counts for nothing: restore the files and judge again, with bubblewrap installed"
            )
        try:
            self._report = self.record.end(self._interrupted or bool(changed))
        except OSError as error:
            self._trouble = f"the report could not be written to {self.record.path}: {error.strerror or error}"
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
            return
        self._why_red = exit_reason(self._report, part=self.record.plan.shards > 1)
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED if self._why_red else pytest.ExitCode.OK
        if changed:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._trouble:
            terminalreporter.write_line(f"ERROR: {self._trouble}", red=True)
        if self._report is not None and self._report.cells:
            console = tables.console(terminalreporter._tw._file)
            console.print()
            tables.print_report(self._report, console)
            console.print(f"\nreport: {self.record.path}")
        elif self._report is not None and not self.record.asked:
            part = self.record.plan.in_words()
            terminalreporter.write_line(f"No cell is in {part}; the report says so: {self.record.path}")
        if self._why_red:
            terminalreporter.write_line(f"The run is not green: {self._why_red}.")


def _nothing_selected(config: pytest.Config) -> str:
    keyword = config.getoption("keyword")
    if not keyword:
        return "nothing was judged: no selected property is asked on these devices in these dtypes"
    return (
        f"nothing was judged: -k {keyword!r} selects no test; --property NAME selects a property, and suggests its name"
    )


def _end_like_an_interrupt(config: pytest.Config) -> None:
    """Write the report before a signal ends the run, as on Ctrl-C. A signal that is ignored stays ignored."""

    def interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        _ignore_endings()
        raise KeyboardInterrupt(signal.Signals(number).name)

    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGINT, *_ENDINGS):
        before = signal.getsignal(number)
        config.add_cleanup(partial(_restore, number, before))
        if before in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, interrupt)


def _restore(number: signal.Signals, handler: Any) -> None:
    signal.signal(number, handler)


def _ignore_endings() -> None:
    """A second signal must not end what the first one began: the report is written, and the workers are ended."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, *_ENDINGS):
            signal.signal(number, signal.SIG_IGN)
