"""One runner process for several attacks, judged as `Isolation` judges what it compares itself.

The import of torch takes seconds. Attacks that change nothing but what they return share a process, and so do the wrong
and the right function of one file.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import torch

from harness import discovery, executing
from harness.judging.judge import judge
from harness.judging.subject import Examples, Subject
from harness.properties import all_properties
from harness.report.cell import Cell
from harness.running import sandbox
from harness.running.remote_function import RemoteFunction
from harness.running.runner_process import Header, RunnerProcess, Tensors

#: The variable that tells what a process here has started, whoever its parent is by now.
_VARIABLE = "STARTED_BY_TOGETHER"
#: Seconds in which a process ends after it was killed.
_GRACE = 10.0


class Together:
    """A runner process, started as for any candidate. It imports one file after another."""

    def __init__(self, choice: str = "auto", seconds: float = 120.0) -> None:
        self._seconds = seconds
        self.folder = sandbox.scratch("lltm=attacks")
        place = sandbox.program(self.folder)
        for file in Path(executing.__path__[0]).glob("*.py"):
            shutil.copyfile(file, place / ("main.py" if file.name == "runner.py" else file.name))
        command = sandbox.command([sys.executable, "-P", str(place / "main.py")], self.folder, choice)
        self._mark = secrets.token_hex(8)
        variables = {**sandbox.environment(self.folder), _VARIABLE: self._mark}
        self._process = RunnerProcess(command, self.folder, variables, 4 * 2**30)
        self._path = [str(Path.cwd())]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()

    def judge(self, file: Path, attribute: str, property: str, examples: int = 20) -> Cell:
        """The cell of a function of that file, in float32 on the CPU."""
        about = {"do": "import", "where": str(file), "attribute": attribute, "device": "cpu", "path": self._path}
        self._path = []  # once is enough
        answer, _ = self._ask(about, {})
        assert answer.get("callable"), answer
        function = RemoteFunction(self._ask, "cpu")
        place = (discovery.operator("lltm"), attribute, "cpu", torch.float32)
        subject = Subject(*place, function, examples=Examples(examples), remote=function, files=(file,))
        return judge(subject, all_properties()[property])

    def started(self) -> list[list[str]]:
        """The command lines of the runner process, and of all that it has started and that still run."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(_VARIABLE) == self._mark:
                    found.append(process.cmdline())
        return found

    def left(self) -> list[list[str]]:
        """What still runs of `started` some seconds after the runner process was ended."""
        deadline = time.monotonic() + _GRACE
        while (found := self.started()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def _ask(self, header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        return self._process.ask(header, tensors, seconds=self._seconds)
