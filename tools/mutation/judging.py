"""Judge one mutant in a forked child of a warm parent.

The parent has imported torch and has computed every oracle once, by judging an honest Python backend; a child inherits
them. It loads the mutant, runs property after property, the cheapest first, and stops at the first that fails. A
mutant can harm its child only: a crash, an exit or a hang counts as noticed.

The parent must never load a compiled backend, because the mutants register their operators in its namespace.
"""

from __future__ import annotations

import builtins
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch

from backends.base import CompiledOperator, Declaration, PythonFunction
from harness.building import build
from harness.discovery import backend, operator
from harness.fuzzing.session import NAME as HOSTILE_CALLS
from harness.fuzzing.session import Fuzzing
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import Examples, Subject
from harness.properties import all_properties
from harness.report.cell import DECLARED, NO_EVIDENCE, NOT_RUN, PASS, Cell

#: The dtypes in which a mutant is judged first, and those in which it is judged only if it survives the first.
DTYPES = (torch.float32, torch.float64)
LAST_DTYPES = (torch.bfloat16,)
#: The folder of a mutated header, in what a failed launch says.
_FOLDER = re.compile(r"(?<=check_launch, )/\S+/")
#: Seconds without any progress after which a child is ended.
HANGS_AFTER = 60.0
#: Most hangs are busy loops, so the processor time of a property is limited, independent of the load of the machine:
#: to these seconds plus this multiple of the honest backend's time.
SPINS_AFTER, TIMES_HONEST = 15.0, 20.0

#: Properties that use several threads of OpenMP. A forked child would wait for ever for threads of the parent's pool,
#: which it does not have. So the parent never judges by these properties itself.
POOLED = ("global-state",)

#: Bytes of resident memory that a child may use in addition to those of its parent.
MEMORY = 6 * 2**30

#: The status of a mutant. For an explained one, the ledger gives the reason why no test notices it; it is not judged.
KILLED, SURVIVED, STILLBORN, EXPLAINED = "killed", "survived", "stillborn", "explained"


#: How a message begins that says nothing about the mutant.
HARNESS_FAILED = "the harness itself failed"


class Stillborn(Exception):
    """The mutant cannot be loaded, so it says nothing about the suite."""


@dataclass(frozen=True)
class Check:
    """A property in a dtype, and the seconds that it took for the honest backend."""

    dtype: torch.dtype
    property: str
    cost: float

    @builtins.property
    def place(self) -> tuple[int, str, str]:
        """The sort key: cost, in steps of a factor of four, so that two runs on one machine have the same order."""
        return round(math.log(max(self.cost, 0.004) / 0.004, 4)), str(self.dtype), self.property


#: The last checks, for compiled code only: opcheck, which does not apply to the honest Python backend, and hostile
#: calls, as in `nox -s fuzz`, for this many seconds.
OPCHECK = Check(torch.float64, "opcheck", 1.0)
HOSTILE, HOSTILE_SECONDS = Check(torch.float32, HOSTILE_CALLS, 1.0), 6.0


@dataclass(frozen=True)
class Candidate:
    """An implementation to judge. `load` runs in the child and may raise Stillborn."""

    id: str
    backend: str
    device: str
    load: Callable[[], Callable[..., Any]]
    declared: tuple[Declaration, ...] = ()
    examples: int = Examples().count
    #: Files of its source, in which a property looks for sizes.
    files: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The result for a candidate: its status and, if it was killed, the property, the dtype and the message."""

    id: str
    status: str
    by: str = ""
    dtype: str = ""
    message: str = ""
    seconds: float = 0.0


def from_library(path: Path, implementation: CompiledOperator, device: str) -> Callable[[], Callable[..., Any]]:
    """The operator that a library registers; the library is built from mutated sources of the implementation."""

    def load() -> Callable[..., Any]:
        try:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
            return build.registered(implementation, device)
        except (OSError, RuntimeError, AttributeError) as error:
            raise Stillborn(str(error.__cause__ or error).splitlines()[0]) from error

    return load


def from_python(text: str, file: str) -> Callable[[], Callable[..., Any]]:
    """The function of a module given by its text."""

    def load() -> Callable[..., Any]:
        module = ModuleType("mutant")
        sys.modules["mutant"] = module
        try:
            exec(compile(text, file, "exec", dont_inherit=True), vars(module))
        except Exception as error:
            raise Stillborn(f"{type(error).__name__}: {error}") from error
        implementation = module.IMPLEMENTATION
        assert isinstance(implementation, PythonFunction)
        return implementation.function

    return load


# The parent -----------------------------------------------------------------------------------------------------------


def warm(
    dtypes: Iterable[torch.dtype], only: Sequence[str] | None = None, honest: str = "python-manual-backward"
) -> list[Check]:
    """Compute all oracles by judging an honest backend; returns the applicable checks, the cheapest first."""
    implementation = backend(honest).implementation("lltm")
    assert isinstance(implementation, PythonFunction)
    found = []
    for dtype in dtypes:
        subject = Subject(operator("lltm"), honest, "cpu", dtype, implementation.function)
        for name, property in all_properties().items():
            if (only is not None and name not in only) or not property.is_asked("cpu", subject.dtype_name):
                continue
            judge_once = _judged_apart if name in POOLED else judge
            first = judge_once(subject, property)
            if first.verdict not in (PASS, NOT_RUN):
                raise RuntimeError(f"the honest backend {honest} fails {name} in {dtype}: {first.reason}")
            if first.verdict == NOT_RUN:
                continue  # this machine cannot tell, or the property does not apply to the operator
            again = judge_once(subject, property) if first.seconds > 0.004 else first
            found.append(Check(dtype, name, again.seconds))
    return sorted(found, key=lambda check: check.place)


def _judged_apart(subject: Subject, property: Property) -> Cell:
    """Judge in a forked child, whose thread pool ends with it."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(writing, json.dumps(asdict(judge(subject, property))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    return Cell(**json.loads(answer))


class Trial:
    """One candidate in its own child process. When `fileno` is readable, call `advance`."""

    def __init__(self, candidate: Candidate, checks: Sequence[Check], stop_at_first: bool = True) -> None:
        self.candidate = candidate
        self._start = self._progress = time.monotonic()
        self._buffer = b""
        self._now = "load"
        self._last: Outcome | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `_ended`)
        self._ended_for = ""
        self.cells: list[dict[str, Any]] = []
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(reading)
            _child(candidate, checks, writing, self._said.fileno(), stop_at_first)
        os.close(writing)
        self.fileno = reading

    def advance(self) -> bool:
        """Read the child's messages; returns whether it has ended."""
        data = os.read(self.fileno, 1 << 16)
        self._progress = time.monotonic()
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._received(json.loads(line))
        return not data

    def watch(self) -> None:
        """End the child if it hangs or uses too much memory; `advance` then reports its end."""
        if time.monotonic() - self._progress > HANGS_AFTER:
            self._end("hang")
        elif _resident(self._pid) > _resident(os.getpid()) + MEMORY:
            self._end("memory")

    def _end(self, why: str) -> None:
        self._ended_for = why
        self._progress = time.monotonic()
        os.kill(self._pid, signal.SIGKILL)

    def _received(self, row: dict[str, Any]) -> None:
        if "now" in row:
            self._now = row["now"]
        elif "cell" in row:
            self.cells.append(row["cell"])
        else:
            self._last = Outcome(id=self.candidate.id, **row)

    def ended(self) -> Outcome:
        """The outcome of the candidate, after `advance` has returned True."""
        os.close(self.fileno)
        _, status = os.waitpid(self._pid, 0)
        self._said.seek(0)
        said = self._said.read().decode(errors="replace")
        self._said.close()
        seconds = round(time.monotonic() - self._start, 3)
        if self._last is not None:
            return Outcome(**{**asdict(self._last), "seconds": seconds})
        where, _, dtype = self._now.partition(" in ")
        code = os.waitstatus_to_exitcode(status)
        if self._ended_for or code == -signal.SIGXCPU:
            how = self._ended_for or "hang"
        else:
            how = f"crash ({signal.Signals(-code).name})" if code < 0 else f"exit ({code})"
        telling = [line for line in said.splitlines() if "ERROR" in line or "runtime error" in line or "what()" in line]
        return Outcome(
            self.candidate.id, KILLED, f"{where}: {how}", dtype, (telling or said.splitlines() or [how])[0], seconds
        )


def _resident(pid: int) -> int:
    """Resident memory in bytes; 0 for a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


# The child ------------------------------------------------------------------------------------------------------------


def _child(candidate: Candidate, checks: Sequence[Check], writing: int, said: int, stop_at_first: bool) -> NoReturn:
    """Judge, and exit without the parent's exit handlers."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # torch renews its pool of threads at its first use after a fork. Threads that do so at the same time may find
        # none: «pool INTERNAL ASSERT FAILED».
        torch.set_num_threads(torch.get_num_threads())

        def send(**row: Any) -> None:
            os.write(writing, json.dumps(row).encode() + b"\n")

        send(**_judged(candidate, checks, send, stop_at_first))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _judged(
    candidate: Candidate, checks: Sequence[Check], send: Callable[..., None], stop_at_first: bool
) -> dict[str, Any]:
    try:
        function = candidate.load()
    except Stillborn as error:
        return {"status": STILLBORN, "message": str(error)}
    outcome: dict[str, Any] | None = None
    for check in checks:
        dtype = str(check.dtype).removeprefix("torch.")
        send(now=f"{check.property} in {dtype}")
        _allow_processor_time(SPINS_AFTER + TIMES_HONEST * check.cost)
        cell = _cell(candidate, function, check)
        if cell.verdict in (PASS, NOT_RUN, DECLARED):
            continue
        message = _FOLDER.sub("", cell.reason.splitlines()[0])
        row = {"status": KILLED, "by": check.property, "dtype": dtype, "message": message}
        if stop_at_first:
            return row
        send(cell=row)
        outcome = outcome or row
    return outcome or {"status": SURVIVED}


def _cell(candidate: Candidate, function: Callable[..., Any], check: Check) -> Cell:
    contract = operator("lltm")
    subject = Subject(
        contract,
        candidate.backend,
        candidate.device,
        check.dtype,
        function,
        candidate.declared,
        examples=Examples(candidate.examples),
        files=candidate.files,
    )
    property = (
        Fuzzing(HOSTILE_SECONDS, examples=candidate.examples).property
        if check == HOSTILE
        else all_properties()[check.property]
    )
    try:
        return judge(subject, property)
    except Exception as error:  # the suite reports it as its own failure
        words = f"{HARNESS_FAILED}: {type(error).__name__}: {error}"
        return Cell(
            contract.name, candidate.backend, candidate.device, subject.dtype_name, property.name, NO_EVIDENCE, words
        )


def _allow_processor_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))
