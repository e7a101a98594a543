"""The tables of docs/method.md that a soak's state gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backends.base import CUDA
from harness.rendering import tables
from tools.soak.batch import TIMES
from tools.soak.state import State
from tools.study.tables import interval

DOCUMENT = Path("docs/method.md")
RECORDS = (Path("results/cpu/soak.json"), Path("results/nvidia-h200/soak.json"))


def drawn(state: State) -> dict[str, str]:
    """The text by the names of the markers: those of a GPU, if the state is of one, or those of the CPU."""
    name = "soak, cuda" if any(row["device"] == CUDA for row in state.places) else "soak"
    return {name: _facts(state), f"{name}, places": _places(state), f"{name}, finds": _finds(state)}


def insert(state: State, document: str) -> str:
    """`document` with each table redrawn."""
    for name, text in drawn(state).items():
        document = tables.insert(text, document, name)
    return document


def _facts(state: State) -> str:
    rows = state.places
    scenarios, alarmed = (sum(row[name] for row in rows) for name in ("scenarios", "alarmed"))
    calls, alarms, others = (sum(row[name] for row in rows) for name in ("calls", "alarms", "without_gradients"))
    hours = sum(run["seconds"] * run["workers"] for run in state.runs) / 3600
    software = ", ".join(dict.fromkeys(f"torch {run['torch']}, {run['machine']}" for run in state.runs))
    _, most = interval(alarmed, scenarios)
    return (
        f"{scenarios:,} scenarios, {calls:,} calls, {alarms:,} alarms, in {alarmed:,} of the scenarios: "
        f"at most {100 * most:.2g}% of scenarios at 95% confidence. {others:,} more calls compared no gradient and "
        f"are not counted. {_since_the_last_alarm(state)}{hours:.2g} hours of one core; {software}.\n"
    )


def _since_the_last_alarm(state: State) -> str:
    """The calls of the runs after the last one with an alarm; nothing where no run has one."""
    alarmed = [number for number, run in enumerate(state.runs) if run["alarms"]]
    if not alarmed:
        return ""
    calls = sum(run["calls"] for run in state.runs[alarmed[-1] + 1 :])
    return f"The runs since the last alarm have {calls:,} of the calls. "


def _places(state: State) -> str:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in state.places:
        groups.setdefault((row["operator"], row["dtype"], row["device"]), []).append(row)
    header = ["operator", "dtype", "device", "implementations", "scenarios", "calls", "alarms", "calls a core-second"]
    header += ["draw / oracle / call / compare"]
    lines = [header, ["---"] * len(header)]
    for key, rows in groups.items():
        sums = {name: sum(row[name] for row in rows) for name in ("scenarios", "calls", "alarms", *TIMES)}
        total = sum(sums[name] for name in TIMES)
        shares = " / ".join(f"{100 * sums[name] / total:.0f}%" if total else "-" for name in TIMES)
        rate = f"{sums['calls'] / total:.0f}" if total else "-"
        implementations = max(len(row["implementations"]) for row in rows)
        counts = (f"{sums[name]:,}" for name in ("scenarios", "calls", "alarms"))
        lines.append([*key, str(implementations), *counts, rate, shares])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _finds(state: State) -> str:
    if not state.finds:
        return "No find waits for its cause.\n"
    lines = []
    for find in state.finds:
        failed = len(find["failed"])
        among = failed + len(find["passed"])
        place = " ".join(find[name] for name in ("operator", "form", "dtype", "device") if find[name])
        reason = tables.plain(find["reason"].splitlines()[0])
        lines.append(f"- {place}: {failed} of {among} implementations, {find['verdict']}: {reason}")
    return "\n".join(lines) + "\n"
