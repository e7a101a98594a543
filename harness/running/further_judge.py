"""Further judges beside one that cannot be forked: each judges the cells of some dtypes in a process of its own.

`harness.running.dividing` forks the judge. With a GPU that cannot be: the judge has used autograd, which has started a
thread for the GPU, and CUDA, whose context no fork can use. So these processes are forked from the one that has
imported the suite and computed nothing (`harness.running.suite_process`), and read the contract by themselves.
"""

from __future__ import annotations

import base64
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.judging.property import Property
from harness.judging.remote import RunnerFailure
from harness.report.cell import Cell
from harness.running import launching
from harness.running.candidate_process import Limits
from harness.running.dividing import CellsElsewhere
from harness.running.runner_process import RunnerProcess
from harness.running.selection import Selection, Slot

#: Bytes that such a process may have: its candidates have limits of their own.
_MEMORY = 2**62
#: Seconds to read the contract.
_BEGIN = 300.0


@dataclass(frozen=True)
class Task:
    """What a further judge needs to know.

    `zygotes` are the descriptors, by RUNNER and SUITE, from which it has processes forked; `cells` are its cells, by
    slot and property, in the order in which they are asked.
    """

    selection: Selection
    limits: Limits
    extra: tuple[Property, ...]
    choice: str
    writable: tuple[Path, ...]
    store: Path | None
    zygotes: Mapping[str, int]
    cells: tuple[tuple[str, str], ...]

    def as_text(self) -> str:
        """The task as its process reads it. The judge writes it, so that the process may unpickle it."""
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def of_text(text: str) -> Task:
        """The reverse of `as_text`."""
        found = pickle.loads(base64.b64decode(text))
        assert isinstance(found, Task)
        return found


def can_be() -> bool:
    """Whether there are the processes from which further judges, and those of candidates, are forked."""
    return {launching.RUNNER, launching.SUITE} <= set(launching.zygotes)


def process_of(task: Task) -> RunnerProcess:
    """A process for that task, which was asked nothing yet."""
    path = [entry for entry in sys.path if entry]
    return RunnerProcess(
        [sys.executable, "-P", "-m", "harness.running.suite_process"],
        Path.cwd(),
        {**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        _MEMORY,
        descriptors=tuple(task.zygotes.values()),
        of=launching.SUITE,
    )


class FurtherJudge(CellsElsewhere):
    """A further judge as the first one sees it, and the cells that it judges. It works from now on."""

    def __init__(self, asked: Sequence[tuple[Slot, str]], task: str, start: Callable[[], RunnerProcess]) -> None:
        """`start()` returns its process, which is asked nothing yet."""
        super().__init__(asked)
        self._process: RunnerProcess | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._ask, args=(task, start), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the process."""
        self._stopped = True
        if self._process is not None:
            self._process.stop()
        self._thread.join()

    def _ask(self, task: str, start: Callable[[], RunnerProcess]) -> None:
        with suppress(RunnerFailure, OSError):
            self._process = start()
            answer, _ = self._process.ask({"judge": task}, seconds=_BEGIN)
            for (slot, property), future in self._cells.items() if "trouble" not in answer else ():
                if self._stopped:
                    break
                # Each cell has its limit there.
                answer, _ = self._process.ask({"slot": slot, "property": property}, seconds=math.inf)
                if "cell" in answer:
                    future.set_result(Cell(**answer["cell"]))
                else:
                    future.cancel()  # the first judge meets what was wrong, too, and says so
        for future in self._cells.values():
            future.cancel()
        if self._process is not None:
            self._process.stop()
