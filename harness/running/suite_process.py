"""The process that has imported the suite and computed nothing, from which those that judge are forked.

A fork of it judges beside a candidate (`harness.running.inside_runner`), or is a further judge
(`harness.running.further_judge`): the first request says which.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import asdict
from typing import Any

from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.executing.zygote import serve
from harness.judging import fresh_process, stored
from harness.judging import judge as judging
from harness.judging.one_thread import one_thread
from harness.report.report import jsonable
from harness.running import forking, inside_runner, launching
from harness.running.further_judge import Task
from harness.running.inside_runner import InsideRunner
from harness.running.isolation import Isolation
from harness.running.selection import Slot, slots


def keep() -> None:
    """Fork the process from which those that judge are forked from now on, if there is none yet.

    This process has imported the suite and computed nothing. With other threads, or after the first use of CUDA, it
    cannot be forked: each process that judges beside a candidate is a new one then.
    """
    if not forking.may_fork() or launching.SUITE in launching.zygotes or threading.active_count() > 1:
        return
    zygote, theirs = forking.pair()
    parent, child = os.getpid(), os.fork()
    if child == 0:
        end_with_parent(parent)
        os.setsid()
        launching.in_a_fork()  # the other process has started those early ones, and ends them
        forking.take_over_streams()
        close_all_but({theirs.fileno()})
        forking.leave_after(lambda: serve(theirs, main))
    theirs.close()
    launching.zygotes[launching.SUITE] = zygote
    atexit.register(launching.close_in, os.getpid(), zygote)


def main(descriptor: int) -> None:
    """In a fork: answer requests until the judge closes the connection."""
    inside_runner.answer_all(descriptor, _Either())


class _Either:
    """What the first request says that this process is."""

    def __init__(self) -> None:
        self._is: InsideRunner | _FurtherJudge | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._is is None:
            self._is = _FurtherJudge(Task.of_text(asked["judge"])) if "judge" in asked else InsideRunner()
        return self._is.answer(asked)


class _FurtherJudge:
    """The slots of this process, and the processes of the candidate beside it."""

    def __init__(self, task: Task) -> None:
        launching.take_over(task.zygotes)
        fresh_process.begin()
        judging.bind(drawing=False)
        self._store = task.store
        self._slots: dict[str, Slot] = {slot.id: slot for slot in slots(task.selection)}
        self._isolation = Isolation(task.selection, task.limits, task.extra, task.choice, task.writable)
        self._isolation.begin([(self._slots[slot], property) for slot, property in task.cells])

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request: nothing to the first, then a cell to each slot and property."""
        if "judge" in asked:
            return {}
        with stored.used(self._store), one_thread():
            return {"cell": jsonable(asdict(self._isolation.judge(self._slots[asked["slot"]], asked["property"])))}


if __name__ == "__main__":
    main(int(sys.argv[1]))
