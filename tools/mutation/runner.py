"""The run: draw mutants, build them while others are judged, judge, compare the survivors with the ledger."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from backends.base import CompiledOperator
from harness import discovery
from harness.building import build
from tools.mutation import judging, on_gpu, zoo_score
from tools.mutation.account import Account, Case, announce, explain, hold_against_ledger, order, read_ledger
from tools.mutation.judging import KILLED, STILLBORN, SURVIVED, Candidate, Check, Outcome, Trial
from tools.mutation.sources import BACKENDS, OPERATOR, ROOT, SOURCES, Job, Workshop, device_of

#: Properties that are judged in float16, last: it differs from bfloat16 in its range and in the checks of dtypes.
HALF = ("forward-parity", "vjp-parity")
#: Properties for survivors under AddressSanitizer and UBSan: they reach every path of the kernels with cheap oracles.
SANITIZED = ("forward-parity", "vjp-parity", "layouts", "rejects-wrong-calls")


class Builder:
    """The process that runs compilers; see builder.py."""

    def __init__(self, workers: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("builder.py")), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdout.fileno(), False)
        self._buffer = b""
        self.fileno = self._stdout.fileno()

    def submit(self, job: Job) -> None:
        row = {"id": job.id, "folder": str(job.folder), "commands": job.commands, "needs": job.needs}
        self._stdin.write(json.dumps(row).encode() + b"\n")
        self._stdin.flush()

    def answers(self) -> list[dict[str, Any]]:
        """The answers since the last call. Raises RuntimeError if the builder has ended."""
        data = self._stdout.read()
        if data == b"":
            raise RuntimeError("the builder process ended before its work was done")
        self._buffer += data or b""
        *lines, self._buffer = self._buffer.split(b"\n")
        return [json.loads(line) for line in lines]

    def close(self) -> None:
        self._stdin.close()
        self._process.terminate()
        self._process.wait()


class TrialPool:
    """Parallel trials and the builder in one loop, without threads."""

    def __init__(self, jobs: int, builder: Builder | None = None) -> None:
        self._jobs, self._builder = jobs, builder
        self._selector = selectors.DefaultSelector()
        self._waiting: list[tuple[Callable[[], Trial], Callable[[Outcome, Trial], None]]] = []
        self._running: dict[int, tuple[Trial, Callable[[Outcome, Trial], None]]] = {}
        self._building: dict[str, Callable[[bool, str], None]] = {}
        if builder is not None:
            self._selector.register(builder.fileno, selectors.EVENT_READ)

    def judge(
        self,
        candidate: Candidate,
        checks: Sequence[Check],
        then: Callable[[Outcome, Trial], None],
        stop_at_first: bool = True,
    ) -> None:
        """Judge as soon as a slot is free; `then` gets the outcome."""
        self._waiting.append((lambda: Trial(candidate, checks, stop_at_first), then))

    def build(self, job: Job, then: Callable[[bool, str], None]) -> None:
        """Build a library; `then` gets whether it succeeded, and the compiler's output."""
        assert self._builder is not None
        self._building[job.id] = then
        self._builder.submit(job)

    def run(self) -> None:
        """Run until nothing is left to do."""
        while self._waiting or self._running or self._building:
            while self._waiting and len(self._running) < self._jobs:
                start, then = self._waiting.pop(0)
                trial = start()
                self._running[trial.fileno] = trial, then
                self._selector.register(trial.fileno, selectors.EVENT_READ)
            for key, _ in self._selector.select(timeout=1.0):
                if key.fd in self._running:
                    self._advance(key.fd)
                elif self._builder is not None:
                    for answer in self._builder.answers():
                        self._building.pop(answer["id"])(answer["ok"], answer["log"])
            for trial, _ in self._running.values():
                trial.watch()

    def _advance(self, descriptor: int) -> None:
        trial, then = self._running[descriptor]
        if not trial.advance():
            return
        # Before closing: another child holds a copy of the descriptor, and epoll would report the closed one for ever.
        self._selector.unregister(descriptor)
        del self._running[descriptor]
        then(trial.ended(), trial)


# One run --------------------------------------------------------------------------------------------------------------


def drawn(everything: bool, only: Sequence[str]) -> tuple[list[Case], dict[str, int]]:
    """The mutants of this run, and how many each file has. `only` are patterns of «id new-line»."""
    cases, enumerated = [], {}
    for source in SOURCES:
        chosen, enumerated[source.file] = source.drawn(everything)
        cases += [Case(source, mutant, list(source.hosts)) for mutant in chosen]
    wanted = [
        case
        for case in cases
        if not only or any(re.search(pattern, f"{case.mutant.id} {case.mutant.after}") for pattern in only)
    ]
    return wanted, enumerated


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    everything: bool = False
    only: tuple[str, ...] = ()
    seeds: int = 1
    zoo: bool = True
    sanitize: bool = True
    properties: tuple[str, ...] = ()


def run(console: Console, options: Options) -> Account:
    """Judge the drawn mutants, the unmutated backends, and the zoo."""
    start = time.monotonic()
    torch.set_num_threads(1)
    cases, enumerated = drawn(options.everything, options.only)
    announce(console, cases, enumerated)
    with tempfile.TemporaryDirectory(prefix="lltm-mutation-") as folder:
        builder = Builder(os.cpu_count() or 1)
        try:
            session = _Session(console, options, Account(cases, enumerated, seeds=options.seeds), Path(folder), builder)
            session.run()
        finally:
            builder.close()
    session.account.seconds = round(time.monotonic() - start, 1)
    return session.account


class _Session:
    """One run, from drawn mutants to an account."""

    def __init__(self, console: Console, options: Options, account: Account, folder: Path, builder: Builder) -> None:
        self.account = account
        self._console, self._options, self._start = console, options, time.monotonic()
        self._pool = TrialPool(os.cpu_count() or 1, builder)
        hosts = list(dict.fromkeys(host for case in account.cases for host in case.hosts))
        self._workshop = Workshop(folder, hosts)
        self._ledger = read_ledger()
        seen = on_gpu.noticed()
        for case in account.cases:
            case.on_gpu = seen.get(case.key, "")
        if not options.everything:
            explain(account.cases, self._ledger)
        self._cases = [case for case in account.cases if case.outcome is None]
        self._compiled = [host for host in hosts if self._workshop.is_compiled(host)]

    def run(self) -> None:
        account, pool = self.account, self._pool
        in_python = [case for case in self._cases if not self._workshop.is_compiled(case.hosts[0])]
        self._order_builds()
        # The builder is working already. Computing the oracles takes this process a minute.
        account.checks = self._warmed()
        self._console.print(f"oracles computed; order of the checks: {order(account.checks)}", highlight=False)
        for case in in_python:
            self._judge(case, case.hosts[0], _in_python(case))
        if self._options.zoo:
            for candidate, own in zoo_score.faults(account.checks):
                pool.judge(candidate, own, lambda outcome, _: account.faults.append(outcome))
            self._controls(0)
        pool.run()
        if self._options.sanitize:
            self._sanitized()
        for seed in range(1, self._options.seeds if self._options.zoo else 0):
            zoo_score.reseed(seed)
            self._warmed()
            self._controls(seed)
            pool.run()
        hold_against_ledger(account, self._ledger)

    def _warmed(self) -> list[Check]:
        only = self._options.properties or None
        half = [name for name in HALF if only is None or name in only]
        first = [*judging.warm(judging.DTYPES, only), *judging.warm(judging.LAST_DTYPES, only)]
        return [*first, *judging.warm([torch.float16], half)]

    # building

    def _order_builds(self) -> None:
        if not self._compiled:
            return
        if any(
            ".cpp" in case.source.rebuilt or case.mutant.edit.operator == "narrow-type" for case in self.account.cases
        ):
            self._pool.build(self._workshop.header_job(), _must_build("the precompiled header"))
        for host in self._compiled:
            self._pool.build(self._workshop.objects_job(host), self._keep(host))
        for host in self._compiled:
            self._build_honest(host)
        for case in self._cases:
            if self._workshop.is_compiled(case.hosts[0]):
                self._build(case, case.hosts[0])

    def _keep(self, host: str) -> Callable[[bool, str], None]:
        def built(ok: bool, log: str) -> None:
            _must_build(host)(ok, log)
            self._workshop.keep_objects(host)

        return built

    def _build_honest(self, host: str) -> None:
        job = self._workshop.honest_job(host)

        def built(ok: bool, log: str) -> None:
            _must_build(job.id)(ok, log)
            candidate = _in_library(f"the unmutated {host}", host, self._workshop.library(job))
            self._pool.judge(candidate, self._checks(host), lambda outcome, _: self.account.honest.append(outcome))

        self._pool.build(job, built)

    def _build(self, case: Case, host: str) -> None:
        job = self._workshop.mutant_job(case.source, case.mutant, host)

        def built(ok: bool, log: str) -> None:
            if ok:
                self._judge(case, host, _in_library(case.mutant.id, host, self._workshop.library(job)))
            else:
                case.host = host
                case.outcome = Outcome(case.mutant.id, STILLBORN, by="compiler", message=_first_error(log))

        self._pool.build(job, built)

    # judging

    def _progress(self, case: Case, outcome: Outcome) -> None:
        if outcome.status == SURVIVED:
            self._console.print(f"survives in {case.host}: {case.mutant.id} {case.mutant.after}", markup=False)
        done = sum(other.outcome is not None for other in self.account.cases)
        if done % 25 == 0:
            passed = time.monotonic() - self._start
            self._console.print(f"{passed:.0f} s: {done} of {len(self.account.cases)} judged", highlight=False)

    def _judge(self, case: Case, host: str, candidate: Candidate) -> None:
        def judged(outcome: Outcome, _: Trial) -> None:
            case.outcome, case.host = outcome, host
            later = case.hosts[case.hosts.index(host) + 1 :]
            if outcome.status == SURVIVED and later:
                self._build(case, later[0])
            self._progress(case, outcome)

        self._pool.judge(candidate, self._checks(host), judged)

    def _checks(self, host: str) -> list[Check]:
        """The checks of a backend; more if it is compiled, unless `--property` narrows them."""
        more = self._workshop.is_compiled(host) and not self._options.properties
        return [*self.account.checks, *([judging.OPCHECK, judging.HOSTILE] if more else [])]

    def _controls(self, seed: int) -> None:
        def judged(outcome: Outcome, trial: Trial) -> None:
            self.account.controls.append((outcome, trial.cells))

        for candidate, own in zoo_score.controls(self.account.checks, seed, everything=self._options.everything):
            self._pool.judge(candidate, own, judged, stop_at_first=False)

    def _sanitized(self) -> None:
        """Judge surviving kernels under sanitizers, as `nox -s sanitize` does: they may access memory out of bounds."""
        survivors = {
            case.mutant.id: case
            for case in self.account.cases
            if case.outcome is not None and case.outcome.status == SURVIVED and case.source.has_kernels
        }
        if not survivors:
            return
        self._console.print(f"{len(survivors)} surviving kernels are judged again under AddressSanitizer and UBSan")
        honest: dict[str, tuple[str, str, str]] = {}
        rows: list[tuple[str, str, str]] = []
        for case in survivors.values():
            for host in case.hosts:
                job = self._workshop.mutant_job(case.source, case.mutant, host, build.SANITIZERS)
                self._sanitized_build(job, case.mutant.id, host, rows.append)
                if host not in honest:
                    right = self._workshop.unmutated_job(case.source, case.mutant, host, build.SANITIZERS)
                    honest[host] = ("", "", "")  # requested; the answer comes later
                    self._sanitized_build(right, f"the unmutated {host}", host, partial(honest.__setitem__, host))
        with _sanitized_process() as process:
            self._pool.run()
            question = {"honest": list(honest.values()), "mutants": rows}
            answer, _ = process.communicate(json.dumps(question).encode())
        if process.returncode != 0:
            raise RuntimeError(f"judging under AddressSanitizer ended with exit code {process.returncode}")
        outcomes = {part: [Outcome(**row) for row in rows] for part, rows in json.loads(answer).items()}
        require_right(outcomes["honest"])
        for outcome in outcomes["mutants"]:
            case = survivors[outcome.id]
            if outcome.status == KILLED:
                case.outcome = replace(outcome, by=f"sanitize: {outcome.by}")

    def _sanitized_build(self, job: Job, id: str, host: str, then: Callable[[tuple[str, str, str]], object]) -> None:
        def built(ok: bool, log: str) -> None:
            _must_build(job.id)(ok, log)
            then((id, host, str(self._workshop.library(job))))

        self._pool.build(job, built)


def require_right(honest: Sequence[Outcome]) -> None:
    """Raise RuntimeError if judging under sanitizers rejects an unmutated backend: it would reject every mutant too."""
    for outcome in honest:
        if outcome.status != SURVIVED:
            raise RuntimeError(
                f"judging under sanitizers rejects {outcome.id}: {outcome.status} by {outcome.by}: {outcome.message}"
            )


def serve() -> None:
    """Judge under AddressSanitizer: read libraries from standard input, write outcomes to standard output.

    The mutants are judged only if all unmutated backends pass.
    """
    torch.set_num_threads(1)
    checks = judging.warm([torch.float32], SANITIZED)
    outcomes: dict[str, list[Outcome]] = {"honest": [], "mutants": []}
    for part, rows in json.loads(sys.stdin.read()).items():
        if any(outcome.status != SURVIVED for outcome in outcomes["honest"]):
            break
        pool = TrialPool(os.cpu_count() or 1)
        for id, host, library in rows:
            candidate = _in_library(id, host, Path(library))
            pool.judge(candidate, checks, lambda outcome, _, part=part: outcomes[part].append(outcome))  # type: ignore[misc]
        pool.run()
    print(json.dumps({part: [asdict(outcome) for outcome in found] for part, found in outcomes.items()}))


def preloaded() -> list[str]:
    """The sanitizer's library, and libstdc++, whose exception functions it looks up before Python has loaded it."""
    names = ("libasan.so", "libstdc++.so.6")
    calls = [[build.host_compiler(), f"-print-file-name={name}"] for name in names]
    return [subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip() for call in calls]


def _sanitized_process() -> subprocess.Popen[bytes]:
    changes = {
        "LD_PRELOAD": " ".join(preloaded()),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # as in the noxfile's session
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tools.mutation", "--serve"],
        cwd=ROOT,
        env={**os.environ, **changes},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _renamed(host: str) -> str:
    """A name that no backend has: by a backend's name, a property's fresh process would load the unmutated backend."""
    return f"mutated {host}"


def _in_library(id: str, host: str, library: Path) -> Candidate:
    implementation = discovery.backend(host).implementation(OPERATOR)
    assert isinstance(implementation, CompiledOperator)
    device = device_of(host)
    load = judging.from_library(library, implementation, device)
    return Candidate(id, _renamed(host), device, load, discovery.backend(host).backend.declared)


def _in_python(case: Case) -> Candidate:
    host = case.hosts[0]
    load = judging.from_python(case.mutant.text, str(BACKENDS / case.mutant.file))
    return Candidate(case.mutant.id, _renamed(host), device_of(host), load, discovery.backend(host).backend.declared)


def _must_build(what: str) -> Callable[[bool, str], None]:
    def check(ok: bool, log: str) -> None:
        if not ok:
            raise RuntimeError(f"{what} does not build, so no mutant of it can be judged:\n{log}")

    return check


def _first_error(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if "error" in line), "does not build")
