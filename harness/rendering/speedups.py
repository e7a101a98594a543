"""How many times as fast as PyTorch an implementation was, from bench records.

The ratios are those of the record: both were timed in the same run, and the interval is the record's. PyTorch is its
own operator (`torch-native`) where that was timed in the run, and the plain expression run eagerly (`python-autograd`)
where it was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

#: The plain expression in PyTorch, which every bench times.
REFERENCE = "python-autograd"
PHASES = ("forward", "backward", "forward+backward")
NATIVE = "torch-native"
#: What is measured against, the better first.
BASELINES = (NATIVE, REFERENCE)


@dataclass(frozen=True)
class Speedup:
    """One row of a bench record against PyTorch: above 1 the implementation is faster. `low` and `high` are the 95%
    interval; `size` is the bytes that the call must move at least."""

    record: str
    time: str
    dtype: str
    case: str
    phase: str
    clock: str
    threads: int | None
    size: float
    seconds: float
    baseline: str
    median: float
    low: float
    high: float


def speedups(
    benches: Sequence[tuple[str, dict[str, Any]]], operator: str, backend: str, device: str
) -> tuple[Speedup, ...]:
    """What the records say of one implementation; in each dtype only the newest record that has it counts."""
    found: dict[str, list[Speedup]] = {}
    for name, bench in sorted(benches, key=lambda named: str(named[1]["environment"].get("time") or "")):
        own = list(_rows(name, bench, operator, backend, device))
        for dtype in {one.dtype for one in own}:
            found[dtype] = [one for one in own if one.dtype == dtype]
    return tuple(one for dtype in sorted(found) for one in found[dtype])


def _rows(name: str, bench: dict[str, Any], operator: str, backend: str, device: str) -> Iterator[Speedup]:
    time = str(bench["environment"].get("time") or "")
    for row in bench["rows"]:
        if (row["operator"], row["backend"], row["device"]) != (operator, backend, device):
            continue
        baseline = next((each for each in BASELINES if each in row["ratios"]), None)
        if baseline is None or baseline == backend:
            continue
        ratio = row["ratios"][baseline]
        measured = (row["seconds"]["median"], baseline, ratio["median"], ratio["low"], ratio["high"])
        what = (row["dtype"], row["case"], row["phase"], row["clock"], row["threads"], row["bytes"])
        yield Speedup(name, time, *what, *measured)


def shown(found: Iterable[Speedup], dtypes: Sequence[str]) -> list[Speedup]:
    """One for each of the dtypes, in their order: forward and backward together, eager calls, the largest case, the
    most threads."""
    chosen: dict[str, Speedup] = {}
    for one in found:
        if one.phase != PHASES[-1] or one.clock != "wall":
            continue
        held = chosen.get(one.dtype)
        if held is None or (one.size, one.threads or 0) > (held.size, held.threads or 0):
            chosen[one.dtype] = one
    return [chosen[dtype] for dtype in dtypes if dtype in chosen]
