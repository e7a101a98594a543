"""The instruments: each times a reference and a backend at some places, and gives the ratio of their times."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bench import record
from harness.errors import Broken
from harness.gate import trees
from harness.gate.sampling import PLANTED, QUESTION, TENTH, SamplingPlan, quadruple
from harness.gate.statistics import Rule, abba, estimate
from harness.gate.workers import Worker, workers
from harness.measuring.clocks import WALL
from harness.measuring.processors import pinned
from harness.report import strict_json
from tools.instruments.agreement import BENCH, GATE, PYTEST

#: The reference's time over the backend's, and the interval that the instrument gives; pytest-benchmark gives none.
Reading = dict[str, float]
#: A case and a phase.
Place = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What is timed, and how much in one launch: rounds of the bench, seconds of pytest-benchmark for each backend,
    quadruples of the gate."""

    operator: str
    reference: str
    backend: str
    device: str
    dtype: str
    places: tuple[Place, ...]
    rounds: int = 30
    seconds: float = 0.3
    pairs: int = 20
    threads: int = 1

    @property
    def selection(self) -> list[str]:
        """Options of the bench and of pytest."""
        backends = [part for name in (self.reference, self.backend) for part in ("--backend", name)]
        return ["--operator", self.operator, *backends, "--device", self.device, "--dtype", self.dtype]


def launch(plan: Plan, folder: Path, draw: random.Random) -> dict[str, dict[Place, Reading]]:
    """Start each instrument once, in an order that is drawn. Raises Broken if one does not time a place."""
    found: dict[str, dict[Place, Reading]] = {}
    for name in draw.sample((BENCH, PYTEST, GATE), 3):
        if name == BENCH:
            found[BENCH] = bench(plan, folder / "bench.json", draw.getrandbits(30))
        elif name == PYTEST:
            found[PYTEST] = session(plan, folder / "pytest-benchmark.json")
        else:
            found |= gate(plan, draw)
    return found


def bench(plan: Plan, file: Path, seed: int) -> dict[Place, Reading]:
    """By `harness bench`."""
    chosen = [part for case in sorted({case for case, _ in plan.places}) for part in ("--case", case)]
    chosen += [part for phase in sorted({phase for _, phase in plan.places}) for part in ("--phase", phase)]
    how = ["--threads", str(plan.threads), "--rounds", str(plan.rounds), "--seed", str(seed), "-o", str(file)]
    _run(plan, [sys.executable, "-m", "harness", "bench", *plan.selection, *chosen, *how])
    return readings_of_bench(plan, record.read(file)["rows"])


def readings_of_bench(plan: Plan, rows: Sequence[record.Row]) -> dict[Place, Reading]:
    """The ratios of the rows of a bench record."""
    found = {}
    for case, phase in plan.places:
        row = record.find(rows, backend=plan.backend, case=case, phase=phase, clock=WALL)
        if row is None or plan.reference not in row["ratios"]:
            raise Broken(f"the bench has no row of {plan.backend} beside {plan.reference} at {case}, {phase}")
        found[case, phase] = dict(row["ratios"][plan.reference])
    return found


def session(plan: Plan, file: Path) -> dict[Place, Reading]:
    """By the pytest-benchmark session of tests/benchmarks: medians of backends that are timed one after the other."""
    how = ["-q", "-p", "no:cacheprovider", f"--benchmark-max-time={plan.seconds}", f"--benchmark-json={file}"]
    _run(plan, [sys.executable, "-m", "pytest", "tests/benchmarks", *plan.selection, *how, "-k", _keyword(plan)])
    return readings_of_session(plan, strict_json.load(file, f"pytest-benchmark wrote no {file}")["benchmarks"])


def _keyword(plan: Plan) -> str:
    """pytest's `-k` for the cases; a phase is part of another one's name, so all phases of a case run."""
    return " or ".join(sorted({case for case, _ in plan.places}))


def readings_of_session(plan: Plan, benchmarks: Sequence[dict[str, Any]]) -> dict[Place, Reading]:
    """The ratios of the medians of a saved run."""
    medians = {
        (benchmark["group"], backend): float(benchmark["stats"]["median"])
        for benchmark in benchmarks
        for backend in (plan.reference, plan.backend)
        if f"-{plan.operator}-{backend}-{plan.device}-" in benchmark["name"].replace("[", "-")
    }
    found = {}
    for case, phase in plan.places:
        group = f"{plan.operator} {case} {phase} {plan.device} {plan.dtype}"
        lost = [backend for backend in (plan.reference, plan.backend) if (group, backend) not in medians]
        if lost:
            raise Broken(f"the pytest-benchmark session has no {group} of {', '.join(lost)}")
        found[case, phase] = {"median": medians[group, plan.reference] / medians[group, plan.backend]}
    return found


def gate(plan: Plan, draw: random.Random) -> dict[str, dict[Place, Reading]]:
    """By two workers of the gate, the second with the backend; and the same with a tenth more calls of the backend."""
    found: dict[str, dict[Place, Reading]] = {GATE: {}, PLANTED: {}}
    with workers([trees.HEAD, trees.HEAD], plan.threads) as (first, second):
        for place in draw.sample(plan.places, len(plan.places)):
            for kind, reading in _of_workers(plan, place, first, second, draw).items():
                found[GATE if kind == QUESTION else PLANTED][place] = reading
    return found


def _of_workers(plan: Plan, place: Place, first: Worker, second: Worker, draw: random.Random) -> dict[str, Reading]:
    case, phase = place
    asked = {"operator": plan.operator, "device": plan.device, "dtype": plan.dtype, "case": case, "phase": phase}
    for worker, backend in ((first, plan.reference), (second, plan.backend)):
        worker.ask("prepare", benchmark={**asked, "backend": backend, "clock": WALL})
    calls = max(int(worker.ask("calls", seconds=SamplingPlan.seconds, multiple=TENTH)) for worker in (first, second))
    more = {QUESTION: calls, PLANTED: calls + calls // TENTH}
    taken: dict[str, list[float]] = {kind: [] for kind in more}
    for _ in range(plan.pairs):
        for kind in draw.sample(tuple(more), len(more)):
            taken[kind].append(abba(*quadruple((first, calls), (second, more[kind]), calls, draw)))
    for worker in (first, second):
        worker.hold_times(plan.device)
    return {kind: reading_of_pairs(pairs) for kind, pairs in taken.items()}


def reading_of_pairs(pairs: Sequence[float]) -> Reading:
    """The ratio from the gate's pairs, logarithms of the backend's time over the reference's."""
    found = estimate([pairs], Rule())
    return {"median": 1 / found.ratio, "low": 1 / found.high, "high": 1 / found.low}


def _run(plan: Plan, command: Sequence[str]) -> None:
    """Run an instrument on as many processors as the plan has threads. Raises Broken with what it printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(plan.threads)}
    with pinned(plan.threads):
        done = subprocess.run(
            command, cwd=trees.HEAD, env=environment, capture_output=True, text=True, check=False, timeout=600
        )
    if done.returncode != 0:
        raise Broken(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
