"""A bench record as tables for a terminal and as Markdown: the tutorial's own table first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.bench.record import Row, find, groups
from spec.contract import BACKWARD, FORWARD

TUTORIAL = {"operator": "lltm", "case": "tutorial", "dtype": "float32"}
REFERENCE = "python-autograd"

Cells = tuple[list[str], list[list[str]]]


def microseconds(seconds: float) -> str:
    """`30.1`, with the significant digits only."""
    value = 1e6 * seconds
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def ratio(found: dict[str, float] | None) -> str:
    """`1.75 (1.71-1.80)`, or a dash."""
    return "-" if found is None else f"{found['median']:.2f} ({found['low']:.2f}-{found['high']:.2f})"


def tutorial(rows: Iterable[Row]) -> dict[str, Cells]:
    """The tutorial's table: forward and backward of each backend in microseconds, by device, clock and threads."""
    found: dict[str, Cells] = {}
    own = [row for row in rows if all(row[key] == value for key, value in TUTORIAL.items())]
    for device, clock, threads in dict.fromkeys((r["device"], r["clock"], r["threads"]) for r in own):
        here = [r for r in own if (r["device"], r["clock"], r["threads"]) == (device, clock, threads)]
        lines = []
        for backend in dict.fromkeys(row["backend"] for row in here):
            pair = [find(here, backend=backend, phase=phase) for phase in (FORWARD, BACKWARD)]
            times = [microseconds(row["seconds"]["median"]) if row else "-" for row in pair]
            ratios = [ratio(row["ratios"].get(REFERENCE)) if row else "-" for row in pair]
            lines.append([backend, *times, *ratios])
        head = ["backend", "forward us", "backward us", "forward: times as fast", "backward: times as fast"]
        found[_where(device, clock, threads)] = (head, lines)
    return found


def _where(device: str, clock: str, threads: int | None) -> str:
    return f"{device}, {clock}" if threads is None else f"{device}, {threads} thread{'s' if threads > 1 else ''}"


def everything(rows: Iterable[Row]) -> dict[str, Cells]:
    """All rows, a table for each operator, device and clock."""
    found: dict[str, Cells] = {}
    for group in groups(rows).values():
        for row in group:
            title = f"{row['operator']} on {_where(row['device'], row['clock'], row['threads'])}"
            others = sorted(set(row["ratios"]) - {REFERENCE})
            head = ["case", "dtype", "phase", "backend", "us", f"x {REFERENCE}", "x others", "of the roofline"]
            lines = found.setdefault(title, (head, []))[1]
            lines.append(
                [
                    row["case"],
                    row["dtype"],
                    row["phase"],
                    row["backend"],
                    microseconds(row["seconds"]["median"]),
                    ratio(row["ratios"].get(REFERENCE)),
                    ", ".join(f"{name} {row['ratios'][name]['median']:.2f}" for name in others) or "-",
                    f"{row['roofline']['fraction']:.1%} ({row['roofline']['bound']})",
                ]
            )
    return found


def show(record: dict[str, Any], console: Console) -> None:
    """The tutorial's table, all others, and what is missing with the reason."""
    machine = record["environment"]
    console.print(f"{machine['gpu'] or machine['cpu']}, torch {machine['torch']}; right before and after timing\n")
    for title, cells in tutorial(record["rows"]).items():
        console.print(_table(f"The tutorial's table: LLTM, batch 16, features 32, state 128, {title}", cells))
    for title, cells in everything(record["rows"]).items():
        console.print(_table(title, cells))
    for entry in record["missing"]:
        where = [str(entry[key]) for key in ("operator", "backend", "device", "dtype", "case", "phase") if entry[key]]
        console.print(f"not timed: {' '.join(where)}: {entry['reason'].splitlines()[0]}", markup=False, soft_wrap=True)


def _table(title: str, cells: Cells) -> Table:
    head, lines = cells
    table = Table(title=title, title_justify="left")
    for name in head:
        table.add_column(name)
    for line in lines:
        table.add_row(*line)
    return table


def markdown(cells: Cells) -> str:
    """One table as Markdown."""
    head, lines = cells
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines)) + "\n"
