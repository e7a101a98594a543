"""Forks of the judge that judge the cells of some dtypes, so that every core has work.

The judge and a candidate wait for each other, so that the two of them keep one core busy. Where several dtypes are
asked, each fork judges those of some of them, beside a process of the candidate that is its own. Whoever has more to
do, by what properties cost, gives its last cells away. Which these are depends on what is asked and on the cores alone.
The judge keeps most of the first dtype. It takes a cell from the fork that has it, and judges the cells of a fork that
has ended. A fork that has judged its cells computes expected results for those of the judge: who judges a cell does not
depend on the time, but nobody waits while there is something to compute.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import asdict

import torch

from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.judging.one_thread import one_thread
from harness.report.cell import Cell
from harness.report.report import jsonable
from harness.running import forking, launching
from harness.running.quick import quick
from harness.running.selection import Slot

#: Seconds of a property that has no cost, since it decides no exit code.
_USUAL = 0.5

#: What is asked: a cell.
Asked = tuple[Slot, str]


class CellsElsewhere:
    """The cells that another process judges, and those that it has judged."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self._cells: dict[tuple[str, str], Future[Cell]] = {(slot.id, property): Future() for slot, property in asked}

    def has(self, slot: Slot, property: str) -> bool:
        """Whether the process is asked for that cell."""
        return (slot.id, property) in self._cells

    def cell(self, slot: Slot, property: str) -> Cell | None:
        """The cell, once the process has judged it; None if it does not."""
        try:
            return self._cells[slot.id, property].result()
        except CancelledError:
            return None


class Fork(CellsElsewhere):
    """A fork of the judge, and the cells that it judges."""

    def __init__(
        self, asked: Sequence[Asked], judge: Callable[[], Callable[[Slot, str], Cell]], then: Callable[[], None]
    ) -> None:
        """`judge()`, called in the fork, returns what judges one cell there; `then()` is called at its end."""
        super().__init__(asked)
        reading, writing = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that there are other threads: they hold nothing
            self._child = os.fork()
        if self._child == 0:
            end_with_parent(parent)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the judge, which ends this process
            close_all_but({writing, *launching.in_a_fork()})
            forking.leave_quietly(lambda: _work(asked, judge, writing, then))
        os.close(writing)
        threading.Thread(target=self._listen, args=(reading,), daemon=True).start()

    def stop(self) -> None:
        """End the process."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def _listen(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8") as lines:
            for future, line in zip(self._cells.values(), lines, strict=False):
                found = json.loads(line) if line.endswith("\n") else None
                if found is None:
                    future.cancel()
                else:
                    future.set_result(Cell(**found))
        for future in self._cells.values():
            future.cancel()


def cores() -> int:
    """The cores for this judge: those that it may use, but no more than OMP_NUM_THREADS says, as a fleet sets it."""
    return min(len(os.sched_getaffinity(0)), torch.get_num_threads())


def divided(asked: Sequence[Asked], cores: int) -> list[list[Asked]]:
    """What each fork judges. The dtypes are dealt to the judge and to one fork for each further core.

    Then the last cell of the one that has most to do goes to the one that has least, as long as that is of use.
    """
    dtypes = list(dict.fromkeys(slot.dtype for slot, _ in asked))
    count = min(cores, len(dtypes))
    parts = [[(slot, name) for slot, name in asked if slot.dtype in dtypes[number::count]] for number in range(count)]
    while count > 1:
        most, least = max(parts, key=_seconds), min(parts, key=_seconds)
        if _seconds(least) + _seconds(most[-1:]) >= _seconds(most):
            break
        least.append(most.pop())
    return [part for part in parts[1:] if part]


def _seconds(asked: Sequence[Asked]) -> float:
    """What these cells cost, in seconds of a processor."""
    return sum(quick().cost.get(property, _USUAL) for _, property in asked)


def _work(
    asked: Sequence[Asked],
    judge: Callable[[], Callable[[Slot, str], Cell]],
    writing: int,
    then: Callable[[], None],
) -> None:
    _judge_all(asked, judge(), writing)
    then()


def _judge_all(asked: Sequence[Asked], judge: Callable[[Slot, str], Cell], writing: int) -> None:
    with one_thread(), os.fdopen(writing, "w", encoding="utf-8") as answers:
        for slot, property in asked:
            found = None
            with suppress(Exception):  # the judge meets it too, and says so
                found = jsonable(asdict(judge(slot, property)))
            answers.write(json.dumps(found) + "\n")
            answers.flush()
