"""The process of one candidate: it is started when the candidate is first needed, and again after it has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backends.base import CPU, CUDA
from harness.candidate import Candidate
from harness.errors import Broken, UsageError
from harness.executing.runner import NAMES
from harness.judging import foreign_text
from harness.judging.remote import RunnerFailure
from harness.running import launching, sandbox
from harness.running.remote_function import RemoteFunction
from harness.running.runner_process import Header, RunnerProcess, Tensors
from harness.running.sanitizers import Sanitizers

#: Seconds for Python to start and to import torch, which is no work of a candidate.
START = 300.0


@dataclass(frozen=True)
class Limits:
    """For one cell: seconds, and bytes of resident memory above what the process had when it was ready."""

    seconds: float = 300.0
    memory: int = 8 * 2**30


def started(
    source: str,
    limits: Limits,
    choice: str = "auto",
    environment: Mapping[str, str] | None = None,
    sanitizers: Sanitizers | None = None,
    device: str = CPU,
) -> RunnerProcess:
    """A process that has imported torch, and not yet the candidate from `source`. Raises RunnerFailure.

    With an `environment`, the source is trusted: it runs with these variables, and without a sandbox. With
    `sanitizers`, they are loaded and watch what it compiles.
    """
    boxed = environment is None and sandbox.is_used(choice)
    process, _ = answering(
        lambda: _started(source, limits, choice, environment, sanitizers, device), {"do": "ready"}, boxed
    )
    return process


def answering(start: Callable[[], RunnerProcess], asked: Header, boxed: bool) -> tuple[RunnerProcess, Header]:
    """A process that `start` starts, and its answer to the first question. Raises RunnerFailure.

    In a sandbox it is tried again: one that hides a socket which is gone meanwhile does not come up.
    """
    for _ in range(sandbox.STARTS - 1 if boxed else 0):
        process = start()
        with suppress(RunnerFailure):
            return process, process.ask(asked, seconds=START)[0]
    process = start()
    return process, process.ask(asked, seconds=START)[0]


def _started(
    source: str,
    limits: Limits,
    choice: str,
    environment: Mapping[str, str] | None,
    sanitizers: Sanitizers | None,
    device: str,
) -> RunnerProcess:
    if environment is None and sanitizers is None:
        program = launching.of_candidate(source, choice, device)
        command, folder, variables, of = list(program.command), program.folder, program.environment, program.of
    else:
        of = ""
        folder = sandbox.scratch(source if sanitizers is None else sanitizers.scratch)
        run = launching.runner(folder)
        command = run if sanitizers is None else sanitizers.command(run)
        if environment is None:
            command = sandbox.command(command, folder, choice)
        variables = sandbox.environment(folder, device) if environment is None else environment
    return RunnerProcess(
        command,
        folder,
        {**variables, **(sanitizers.environment() if sanitizers else {})},
        limits.memory,
        signal_offset=command[0] == "bwrap",
        of=of,
    )


def lost(why: str) -> str:
    """That the process cannot use its CUDA device any more, as a predicate."""
    return f"could use its CUDA device no more («{why}»)"


class CandidateProcess:
    """A candidate in a process of its own, which has imported torch and nothing of this project."""

    def __init__(
        self,
        candidate: Candidate,
        device: str,
        limits: Limits,
        choice: str = "auto",
        sanitizers: Sanitizers | None = None,
    ) -> None:
        """`choice` is a value of `--sandbox`. With `sanitizers`, they watch what the candidate compiles."""
        self._candidate, self._device, self._limits, self._choice = candidate, device, limits, choice
        self._process: RunnerProcess | None = None
        self.sanitizers = sanitizers
        self._declared: dict[str, str] | None = None
        #: Why the candidate cannot be imported. It is not tried again: each try may take until the limit.
        self._broken = ""
        #: Seconds that are left for the requests of this cell. The judge's own work does not count.
        self._left = limits.seconds
        #: The device of its tensors.
        self._kind = CUDA if device == CUDA else CPU
        self.function = RemoteFunction(self.ask, self._kind)

    def begin(self) -> None:
        """A new cell begins: it has the whole time limit."""
        self._left = self._limits.seconds

    def declared(self) -> dict[str, str]:
        """What the candidate's module declares that it does not do. Imports it where that has not been done.

        Raises Broken if the import fails, ends the process or takes too long; UsageError if the function is not there.
        """
        if self._broken:
            raise Broken(self._broken)
        if self._declared is None or self._process is None or not self._process.alive:
            try:
                self._declared = self._imported()
            except RunnerFailure as error:
                where = foreign_text.place(self._candidate.where)
                self._broken = f"{where} does not import: its process {error}{self._last_words()}"
                raise Broken(self._broken) from error
            except Broken as error:
                self._broken = str(error)
                raise
            except UsageError as error:
                if self._declared is None:
                    raise
                where = foreign_text.place(self._candidate.where)
                self._broken = f"{where} is not what it was at its first import: {error}"
                raise Broken(self._broken) from error
        return self._declared

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def cpu_seconds(self) -> float:
        """Processor time that the process and everything that it started have taken."""
        return self._process.cpu_seconds() if self._process is not None else 0.0

    def ask(self, header: Header, tensors: Tensors, *, seconds: float | None = None) -> tuple[Header, Tensors]:
        """The reply of the process to a request, by default within what the cell has left. Raises RunnerFailure."""
        if self._process is None or not self._process.alive:
            try:
                self.declared()
            except Broken as error:
                raise RunnerFailure(f"could not be started again: {error}") from error
        began = time.monotonic()
        try:
            return self._asked(header, tensors, max(self._left, 0.01) if seconds is None else seconds)
        finally:
            self._left -= time.monotonic() - began

    def _asked(self, header: Header, tensors: Tensors, seconds: float) -> tuple[Header, Tensors]:
        """The reply of the process. Raises RunnerFailure, which quotes what a sanitizer found.

        A process that can use its CUDA device no more is ended: each later call would fail, right or wrong.
        """
        assert self._process is not None
        try:
            answer, found = self._process.ask(header, tensors, seconds=seconds)
        except RunnerFailure as error:
            finding = self.sanitizers.finding(self._process.said) if self.sanitizers is not None else ""
            if not finding:
                raise
            raise RunnerFailure(f"{error}, because of «{finding}»,") from error
        if answer.get("lost"):
            self.stop()
            raise RunnerFailure(lost(answer["lost"]))
        return answer, found

    def _imported(self) -> dict[str, str]:
        self.stop()
        self._process = started(
            self._candidate.text, self._limits, self._choice, sanitizers=self.sanitizers, device=self._device
        )
        answer, _ = self._asked(
            {
                "do": "import",
                "where": self._candidate.where,
                "attribute": self._candidate.attribute,
                "device": self._kind,
                "path": [str(Path.cwd())],
            },
            {},
            self._limits.seconds,
        )
        if "error" in answer:
            error = answer["error"] if isinstance(answer["error"], dict) else {}
            text = f": {foreign_text.message(str(error['text']))}" if error.get("text") else ""
            kind, where = foreign_text.name(error.get("kind")), foreign_text.place(self._candidate.where)
            raise Broken(f"{where} does not import: {kind}{text}")
        names = answer.get("names")
        declared = self._candidate.check(
            bool(answer.get("callable")),
            foreign_text.name(answer.get("kind")),
            map(foreign_text.name, names[:NAMES] if isinstance(names, list) else []),
            answer.get("declared"),
            foreign_text.name(answer.get("shown")),
        )
        return {property: foreign_text.message(reason) for property, reason in declared.items()}

    def _last_words(self) -> str:
        lines = self._process.said.strip().splitlines() if self._process is not None else []
        return f"; its last line of output was: {lines[-1]}" if lines else ""
