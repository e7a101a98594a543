"""A simulated machine: workers that answer like those of the gate, with a random generator as clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import Unavailable
from harness.gate import sampling
from harness.gate.sampling import Samples, SamplingPlan, sample
from harness.gate.workers import SuspectTimes, WorkerFailed

BASE, HEAD = Path("base"), Path("head")
BENCHMARK = {"operator": "lltm", "backend": "it", "device": "cpu", "dtype": "float32", "case": "tutorial"}


@dataclass
class Machine:
    """The costs of the trees on it. `noise` is the standard deviation of the logarithm of a block's time.

    `second` is the slow-down of the second of several processes, whatever it runs. `raises` is the error of preparing
    a tree.
    """

    seconds: dict[Path, float] = field(default_factory=lambda: {BASE: 1e-4, HEAD: 1e-4})
    memory: dict[Path, int] = field(default_factory=lambda: {BASE: 1000, HEAD: 1000})
    noise: float = 0.01
    second: float = 0.0
    raises: dict[Path, Exception] = field(default_factory=dict)
    suspect: frozenset[Path] = frozenset()
    started: int = 0

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng(0)

    @contextmanager
    def workers(self, trees: Sequence[Path], threads: int) -> Iterator[list[Any]]:
        self.started += 1
        yield [_Worker(self, tree, 1 + self.second * (place == 1)) for place, tree in enumerate(trees)]


class _Worker:
    def __init__(self, machine: Machine, tree: Path, factor: float) -> None:
        self._machine, self._tree, self._factor = machine, tree, factor

    def hold_times(self, device: str) -> None:
        if self._tree in self._machine.suspect:
            raise SuspectTimes("it reported 1 s for 2 s")

    def ask(self, what: str, **fields: Any) -> Any:
        machine = self._machine
        if what == "prepare" and self._tree in machine.raises:
            raise machine.raises[self._tree]
        if what == "time":
            noise = float(np.exp(machine.generator.normal(0, machine.noise)))
            return fields["calls"] * machine.seconds[self._tree] * self._factor * noise
        return {"prepare": None, "calls": 20, "memory": machine.memory[self._tree]}[what]


PLAN = SamplingPlan()


def measured(monkeypatch: pytest.MonkeyPatch, machine: Machine, plan: SamplingPlan = PLAN) -> dict[str, Samples]:
    """The samples of one benchmark on that machine."""
    monkeypatch.setattr(sampling, "workers", machine.workers)
    return sample(BASE, HEAD, [BENCHMARK], plan, lambda text: None)


BROKEN, MISSING = WorkerFailed("it crashed"), Unavailable("no such device")
