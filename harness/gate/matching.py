"""The benchmarks of two trees side by side: which can be compared, and what became of the others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

#: What identifies a benchmark; phase and clock are of the run, and the same in both trees.
NAMES = ("operator", "backend", "device", "dtype", "case")
MISSING, EXTRA, RENAMED, CHANGED = ("missing", "extra", "renamed", "changed")


@dataclass(frozen=True)
class Fate:
    """What became of a benchmark that is not the same in both trees. `missing`, `renamed` and `changed` fail the gate.

    `missing`: base has it, head has not. `extra`: the other way. `renamed`: head has one of another name with the same
    operator or backend and the same sizes. `changed`: the name is the same, the sizes are not.
    """

    fate: str
    benchmark: str
    reason: str


def name(benchmark: dict[str, Any]) -> str:
    """`lltm-aten-cpp-cpu-float32-tutorial`, and phase and clock where they are there."""
    return "-".join(str(benchmark[key]) for key in (*NAMES, "phase", "clock") if key in benchmark)


def match(base: Iterable[dict[str, Any]], head: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[Fate]]:
    """What both trees have with the same sizes, in the order of head, and the fates of all others."""
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
    """Whether all is the same but one of the names."""
    differing = [key for key in NAMES if old[key] != new[key]]
    return old["sizes"] == new["sizes"] and len(differing) == 1 and differing[0] in ("operator", "backend", "case")


def _sizes(benchmark: dict[str, Any]) -> str:
    return ", ".join(f"{symbol}={size}" for symbol, size in benchmark["sizes"].items())


def selected(benchmarks: Sequence[dict[str, Any]], wanted: dict[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """Those whose names are among the wanted ones; an empty tuple wants all."""
    return [b for b in benchmarks if all(not names or b[key] in names for key, names in wanted.items())]
