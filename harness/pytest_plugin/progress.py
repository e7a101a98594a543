"""The display of a run in progress: a bar with counts and the time left, in place of pytest's dots.

The bar is shown only on an interactive terminal. Without a terminal, under CI, in a worker, and with pytest's options
-v or -s, pytest's own lines stay as they are. The final summary is the same in both cases.

There is no extra thread, because it could disturb a candidate that is judged in this process: the bar is drawn when a
test begins or ends.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, TextIO

import pytest
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from harness.rendering.tables import MARKS, STYLES
from harness.report.cell import FAIL, NO_EVIDENCE, Cell

#: The time left is estimated from this many seconds of the run: tests of one property are adjacent, and properties
#: differ in duration.
_MEMORY = 900.0


def wanted(config: pytest.Config, stream: TextIO) -> bool:
    """Whether to show the bar: on an interactive terminal, unless the options ask for pytest's own output."""
    return (
        stream.isatty()
        and not hasattr(config, "workerinput")
        and not os.environ.get("CI")
        and os.environ.get("TERM") != "dumb"
        and config.get_verbosity() <= 0
        and config.getoption("capture", "no") != "no"
        and not config.getoption("usepdb", False)
        and not config.getoption("collectonly", False)
    )


class Bar:
    """The bar: counts of verdicts so far, cells done and to do, the time left, and the test that runs now."""

    def __init__(self, console: Console, total: int) -> None:
        self._counts: Counter[str] = Counter()
        self._progress = Progress(
            TextColumn("{task.fields[counts]}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            speed_estimate_period=_MEMORY,
        )
        self._task: TaskID = self._progress.add_task("", total=total, counts="")
        self._progress.start()

    def judging(self, name: str) -> None:
        """A test began."""
        self._progress.update(self._task, description=name, refresh=True)

    def judged(self, cells: Sequence[Cell], required: bool = True) -> None:
        """A test ended, with these cells; bad ones that are required are printed at once, above the bar."""
        for cell in cells:
            self._counts[cell.verdict] += 1
            if required and cell.verdict in (FAIL, NO_EVIDENCE):
                line = f"{MARKS[cell.verdict]} {'/'.join(cell.key)}: {cell.reason.splitlines()[0]}"
                self._progress.console.print(Text(line, style=STYLES[cell.verdict]))
        counts = " ".join(
            f"[{STYLES[verdict]}]{MARKS[verdict]} {self._counts[verdict]}[/]"
            for verdict in MARKS
            if self._counts[verdict]
        )
        self._progress.update(self._task, advance=1, counts=counts, refresh=True)

    def end(self) -> None:
        """Remove the bar."""
        self._progress.stop()


class Live:
    """The plugin: from pytest's hooks to the bar. A run without a cell among its tests keeps pytest's own lines."""

    def __init__(
        self, reporter: Any, is_cell: Callable[[str], bool], cells_of: Callable[[pytest.TestReport], list[Cell]]
    ) -> None:
        self._reporter, self._is_cell, self._cells_of = reporter, is_cell, cells_of
        self._total = 0
        self._bar: Bar | None = None

    def _collected(self, ids: Sequence[str]) -> None:
        if any(map(self._is_cell, ids)):
            self._total = len(ids)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:  # noqa: ARG002
        self._collected(ids)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        if self._bar is None and self._total:  # not earlier: pytest's first lines would be written into it
            self._reporter._show_progress_info = False  # so would pytest's percentage
            self._bar = Bar(Console(file=self._reporter._tw._file), self._total)
        if self._bar is not None:
            self._bar.judging(nodeid.rpartition("::")[2])

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Suppress the letter and the word while there is a bar; the category is still counted."""
        status = yield
        return (status[0], "", "") if self._bar is not None and status else status

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._bar is not None and (report.when == "call" or (report.when == "setup" and not report.passed)):
            self._bar.judged(self._cells_of(report), required=not report.skipped)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        if self._bar is not None:
            self._bar.end()
        self._bar, self._total = None, 0


def install(
    config: pytest.Config, is_cell: Callable[[str], bool], cells_of: Callable[[pytest.TestReport], list[Cell]]
) -> None:
    """Show the bar in this run, if `wanted` says so."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and wanted(config, reporter._tw._file):
        config.pluginmanager.register(Live(reporter, is_cell, cells_of), "conformance-progress")
