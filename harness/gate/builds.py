"""The time of a build in an empty cache: each compiled operator, base and head in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import Unavailable
from harness.gate.sampling import Say
from harness.gate.workers import Worker, WorkerFailed

#: The allowed ratio of build times. One build is a single sample, so only a gross change counts.
LONGER = 0.5
#: Builds below this many seconds never count as too long: a Python function is loaded, not built.
LEAST = 2.0

Pair = tuple[float, float]


def compare(base: Path, head: Path, benchmarks: Sequence[dict[str, Any]], say: Say) -> dict[str, Pair]:
    """(base, head) seconds by operator and backend, the least of an ABBA quadruple. Failed builds are left out."""
    found = {}
    for benchmark in {(b["operator"], b["backend"]): b for b in benchmarks}.values():
        name = f"{benchmark['operator']}-{benchmark['backend']}"
        say(f"build {name}")
        try:
            a1, b1, b2, a2 = (_seconds(tree, benchmark) for tree in (base, head, head, base))
        except (Unavailable, WorkerFailed) as error:
            say(f"build {name}: {error}")
            continue
        found[name] = (min(a1, a2), min(b1, b2))
    return found


def _seconds(tree: Path, benchmark: dict[str, Any]) -> float:
    with tempfile.TemporaryDirectory() as cache:
        worker = Worker(tree, threads=1, cache=Path(cache))
        try:
            worker.greet()
            return float(worker.ask("build", benchmark=benchmark))
        finally:
            worker.stop()


def problems(found: Mapping[str, Pair]) -> list[str]:
    """A sentence for each build that takes much longer than in base."""
    return [
        f"{name}: building took {head:.1f} s, where base takes {base:.1f} s"
        for name, (base, head) in found.items()
        if head > max(LEAST, base * (1 + LONGER))
    ]
