"""Pair the benchmarks of two trees: which can be compared, and why the others cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: The fields that identify a benchmark; phase and clock belong to the run and are the same in both trees.
NAMES = ("operator", "backend", "device", "dtype", "case")
MISSING, EXTRA, RENAMED, CHANGED = ("missing", "extra", "renamed", "changed")


@dataclass(frozen=True)
class Fate:
    """The status of a benchmark that differs between the trees. `missing`, `renamed` and `changed` fail the gate.

    `missing`: only base has it. `extra`: only head has it. `renamed`: head has one with the same sizes whose name
    differs in one part. `changed`: the name is the same, the sizes are not.
    """

    fate: str
    benchmark: str
    reason: str


def name(benchmark: dict[str, Any]) -> str:
    """`lltm-aten-cpp-cpu-float32-tutorial`, and phase and clock if they are given."""
    return "-".join(str(benchmark[key]) for key in (*NAMES, "phase", "clock") if key in benchmark)


def match(base: Iterable[dict[str, Any]], head: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Fate]]:
    """The benchmarks that both trees have with the same sizes, in the order of head, and the fates of all others."""
    before, after = {name(b): b for b in base}, {name(b): b for b in head}
    gone = [key for key in before if key not in after]
    new = [key for key in after if key not in before]
    fates, taken = [], set()
    for key in gone:
        successor = next((n for n in new if n not in taken and _succeeds(before[key], after[n])), None)
        if successor is None:
            fates.append(Fate(MISSING, key, "base has it and head has not: say so in the change, or bring it back"))
        else:
            taken.add(successor)
            fates.append(Fate(RENAMED, key, f"head calls it {successor}: compare with a base that has the new name"))
    fates += (
        Fate(EXTRA, key, "head has it and base has not: nothing to compare with") for key in new if key not in taken
    )
    both = [key for key in after if key in before]
    for key in both:
        if before[key]["sizes"] != after[key]["sizes"]:
            was, now = _sizes(before[key]), _sizes(after[key])
            fates.append(Fate(CHANGED, key, f"its sizes were {was} and are {now}: give other sizes another name"))
    return [after[key] for key in both if before[key]["sizes"] == after[key]["sizes"]], fates


def _succeeds(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the two differ in exactly one of the names."""
    differing = [key for key in NAMES if old[key] != new[key]]
    return old["sizes"] == new["sizes"] and len(differing) == 1 and differing[0] in ("operator", "backend", "case")


def _sizes(benchmark: dict[str, Any]) -> str:
    return ", ".join(f"{symbol}={size}" for symbol, size in benchmark["sizes"].items())


def why_broken(benchmark: dict[str, Any], broken: Iterable[dict[str, Any]]) -> str:
    """Why a tree that has these broken backends cannot import this benchmark; empty if it can."""
    for entry in broken:
        if entry["backend"] == benchmark["backend"] and entry["operator"] in (None, benchmark["operator"]):
            return str(entry["reason"])
    return ""


def selected(benchmarks: Sequence[dict[str, Any]], wanted: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """The benchmarks whose names are among the wanted ones; an empty tuple selects all."""
    return [b for b in benchmarks if all(not names or b[key] in names for key, names in wanted.items())]
