"""Judge one mutant in a forked child of a warm parent.

The parent has imported torch and has computed every oracle once, by judging an honest Python backend; a child finds
them in its memory. It loads the mutant, runs property after property, the cheapest first, and stops at the first that
fails. What a mutant does to a process it does to its child: a crash, an exit or a hang is a way of being noticed.

The parent must never load a compiled backend, whose namespace the mutants register in.
"""

from __future__ import annotations

import builtins
import json
import math
import os
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

#: What a mutant is judged in first, and what is asked only if it survives that.
DTYPES = (torch.float32, torch.float64)
LAST_DTYPES = (torch.bfloat16,)
#: Seconds without any progress after which a child is ended.
HANGS_AFTER = 60.0
#: A hang mostly spins. Processor time that one property may take, whatever else the machine does: seconds, and times
#: what the honest backend took.
SPINS_AFTER, TIMES_HONEST = 15.0, 20.0

#: Judged by several threads of OpenMP, whose pool a forked child does not have but believes in: it would wait for ever.
#: So the parent never judges by these itself.
POOLED = ("global-state",)

#: Bytes of resident memory that a child may take above what its parent has.
MEMORY = 6 * 2**30

#: What becomes of a mutant. Of an explained one, the ledger says why nothing would notice it; it is not judged.
KILLED, SURVIVED, STILLBORN, EXPLAINED = "killed", "survived", "stillborn", "explained"


class Stillborn(Exception):
    """The mutant cannot be loaded: it is no program, and shows nothing of the suite."""


@dataclass(frozen=True)
class Hearing:
    """A property in a dtype, and what it cost the honest backend in seconds."""

    dtype: torch.dtype
    property: str
    cost: float

    @builtins.property
    def place(self) -> tuple[int, str, str]:
        """Sorts by cost, but in steps of four, so that two runs on one machine hear in one order."""
        return round(math.log(max(self.cost, 0.004) / 0.004, 4)), str(self.dtype), self.property


#: What is asked of compiled code alone, last: opcheck, which finds nothing in the honest Python backend, and hostile
#: calls, as `nox -s fuzz` makes them, for so many seconds.
OPCHECK = Hearing(torch.float64, "opcheck", 1.0)
HOSTILE, HOSTILE_SECONDS = Hearing(torch.float32, HOSTILE_CALLS, 1.0), 6.0


@dataclass(frozen=True)
class Candidate:
    """What is judged. `load` runs in the child and may raise Stillborn."""

    id: str
    backend: str
    device: str
    load: Callable[[], Callable[..., Any]]
    declared: tuple[Declaration, ...] = ()
    examples: int = Examples().count


@dataclass(frozen=True)
class Outcome:
    """What came of a candidate: killed by which property, in which dtype, with which words; or not."""

    id: str
    status: str
    by: str = ""
    dtype: str = ""
    message: str = ""
    seconds: float = 0.0


def from_library(path: Path, implementation: CompiledOperator, device: str) -> Callable[[], Callable[..., Any]]:
    """The operator that a library registers, built of mutated sources of the implementation."""

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
) -> list[Hearing]:
    """Compute all oracles by judging an honest backend; what applies to it with its cost, the cheapest first."""
    implementation = backend(honest).implementation("lltm")
    assert isinstance(implementation, PythonFunction)
    found = []
    for dtype in dtypes:
        subject = Subject(operator("lltm"), honest, "cpu", dtype, implementation.function)
        for name, property in all_properties().items():
            if only is not None and name not in only:
                continue
            hear = _apart if name in POOLED else judge
            first = hear(subject, property)
            if first.verdict not in (PASS, NOT_RUN):
                raise RuntimeError(f"the honest backend {honest} does not hold {name} in {dtype}: {first.reason}")
            if first.verdict == NOT_RUN:
                continue  # it says nothing about this device or dtype
            again = hear(subject, property) if first.seconds > 0.004 else first
            found.append(Hearing(dtype, name, again.seconds))
    return sorted(found, key=lambda hearing: hearing.place)


def _apart(subject: Subject, property: Property) -> Cell:
    """Judge in a forked child, which takes its thread pool with it."""
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
    """One candidate in a child of its own. Read `fileno` when it is readable, then `advance`."""

    def __init__(self, candidate: Candidate, hearings: Sequence[Hearing], stop_at_first: bool = True) -> None:
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
            _child(candidate, hearings, writing, self._said.fileno(), stop_at_first)
        os.close(writing)
        self.fileno = reading

    def advance(self) -> bool:
        """Read what the child says; whether it has ended."""
        data = os.read(self.fileno, 1 << 16)
        self._progress = time.monotonic()
        self._buffer += data
        *lines, self._buffer = self._buffer.split(b"\n")
        for line in lines:
            self._heard(json.loads(line))
        return not data

    def watch(self) -> None:
        """End the child if it says nothing for too long, or takes all memory; the outcome then comes by `advance`."""
        if time.monotonic() - self._progress > HANGS_AFTER:
            self._end("hang")
        elif _resident(self._pid) > _resident(os.getpid()) + MEMORY:
            self._end("memory")

    def _end(self, why: str) -> None:
        self._ended_for = why
        self._progress = time.monotonic()
        os.kill(self._pid, signal.SIGKILL)

    def _heard(self, row: dict[str, Any]) -> None:
        if "now" in row:
            self._now = row["now"]
        elif "cell" in row:
            self.cells.append(row["cell"])
        else:
            self._last = Outcome(id=self.candidate.id, **row)

    def ended(self) -> Outcome:
        """What came of the candidate, once `advance` has said that its child ended."""
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
    """Bytes; 0 for a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


# The child ------------------------------------------------------------------------------------------------------------


def _child(candidate: Candidate, hearings: Sequence[Hearing], writing: int, said: int, stop_at_first: bool) -> NoReturn:
    """Judge, and leave without any of the parent's farewells."""
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        os.dup2(said, 1)
        os.dup2(said, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        def tell(**row: Any) -> None:
            os.write(writing, json.dumps(row).encode() + b"\n")

        tell(**_judged(candidate, hearings, tell, stop_at_first))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _judged(
    candidate: Candidate, hearings: Sequence[Hearing], tell: Callable[..., None], stop_at_first: bool
) -> dict[str, Any]:
    try:
        function = candidate.load()
    except Stillborn as error:
        return {"status": STILLBORN, "message": str(error)}
    outcome: dict[str, Any] | None = None
    for hearing in hearings:
        dtype = str(hearing.dtype).removeprefix("torch.")
        tell(now=f"{hearing.property} in {dtype}")
        _allow_processor_time(SPINS_AFTER + TIMES_HONEST * hearing.cost)
        cell = _cell(candidate, function, hearing)
        if cell.verdict in (PASS, NOT_RUN, DECLARED):
            continue
        row = {"status": KILLED, "by": hearing.property, "dtype": dtype, "message": cell.reason.splitlines()[0]}
        if stop_at_first:
            return row
        tell(cell=row)
        outcome = outcome or row
    return outcome or {"status": SURVIVED}


def _cell(candidate: Candidate, function: Callable[..., Any], hearing: Hearing) -> Cell:
    law = operator("lltm")
    subject = Subject(
        law,
        candidate.backend,
        candidate.device,
        hearing.dtype,
        function,
        candidate.declared,
        examples=Examples(candidate.examples),
    )
    property = (
        Fuzzing(HOSTILE_SECONDS, examples=candidate.examples).property
        if hearing == HOSTILE
        else all_properties()[hearing.property]
    )
    try:
        return judge(subject, property)
    except Exception as error:  # the suite reports that as its own failure, and fails the test
        words = f"the harness itself failed: {type(error).__name__}: {error}"
        return Cell(
            law.name, candidate.backend, candidate.device, subject.dtype_name, property.name, NO_EVIDENCE, words
        )


def _allow_processor_time(seconds: float) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds) + 1, hard))
