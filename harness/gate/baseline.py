"""`--baseline FILE`: compare the ratios of a bench record with those of a new run, on any machine.

Times of two machines, or of two days, cannot be compared. So each backend's time is divided by that of a reference
backend in the same run, and these ratios are compared. This detects less than `--base`: it cannot detect a change that
slows the reference down as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from harness.bench import measurement, record
from harness.bench.measurement import Settings
from harness.bench.products import is_backend
from harness.bench.record import Row
from harness.bench.tables import REFERENCE, ratio
from harness.errors import UsageError
from harness.gate.matching import EXTRA, MISSING
from harness.gate.sampling import Say
from harness.gate.verdict import EXIT_CODES, FAILED, FASTER, INCONCLUSIVE, NOT_SLOWER, PASSED, SLOWER
from harness.running.selection import Selection, slots

_KEYS = ("operator", "backend", "device", "dtype", "case", "phase", "clock", "threads")


@dataclass(frozen=True)
class RowChange:
    """The verdict on one row: `slower`, `faster`, `not-slower`, `missing` or `extra`."""

    row: str
    verdict: str
    before: dict[str, float] | None = None
    after: dict[str, float] | None = None


def changes(before: Iterable[Row], after: Iterable[Row], threshold: float, median: float) -> list[RowChange]:
    """A change for each row of either record. `slower`: the intervals differ by `threshold`, medians by `median`."""
    old, new = (
        {_key(row): row["ratios"].get(REFERENCE) for row in rows if _is_compared(row)} for rows in (before, after)
    )
    found = []
    for key in dict.fromkeys((*old, *new)):
        was, now = old.get(key), new.get(key)
        if was is None or now is None:
            found.append(RowChange(key, MISSING if key in old and key not in new else EXTRA, was, now))
        elif was["low"] > now["high"] * (1 + threshold) and was["median"] >= now["median"] * (1 + median):
            found.append(RowChange(key, SLOWER, was, now))
        elif now["low"] > was["high"] * (1 + threshold) and now["median"] >= was["median"] * (1 + median):
            found.append(RowChange(key, FASTER, was, now))
        else:
            found.append(RowChange(key, NOT_SLOWER, was, now))
    return found


def _key(row: Row) -> str:
    return "-".join(str(row[key]) for key in _KEYS if row[key] is not None)


def _is_compared(row: Row) -> bool:
    return row["backend"] != REFERENCE and is_backend(row["backend"]) and REFERENCE in row["ratios"]


def overall(found: Iterable[RowChange], wrong: bool) -> str:
    """`fail` if a row is slower, missing or wrong; `inconclusive` if there was nothing to compare."""
    verdicts = {change.verdict for change in found}
    if wrong or verdicts & {SLOWER, MISSING}:
        return FAILED
    return PASSED if verdicts - {EXTRA} else INCONCLUSIVE


def against_baseline(given: argparse.Namespace, console: Console, say: Say) -> int:
    """Measure the rows of the record again and compare. Returns the exit code. Raises UsageError without such rows."""
    baseline = record.read(given.baseline, option="--baseline")
    rows = [row for row in baseline["rows"] if _wanted(row, given)]
    if not rows:
        raise UsageError(f"--baseline {given.baseline} has no row of the selection")

    def names(key: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row[key] for row in rows))

    backends = tuple(dict.fromkeys((REFERENCE, *(name for name in names("backend") if is_backend(name)))))
    asked = Selection(names("operator"), backends, names("device"), names("dtype"))
    threads = tuple(dict.fromkeys(row["threads"] for row in rows if row["threads"])) or (given.threads,)
    rounds = given.launches * given.pairs
    settings = Settings(rounds, given.block, given.longest, threads, names("case"), names("phase"), given.seed)
    made = measurement.measure(slots(asked), settings, say)
    record.write(made, given.output)
    found = changes(rows, [row for row in made["rows"] if _wanted(row, given)], given.threshold, given.median)
    wrong = [entry for entry in made["missing"] if entry["status"] in (record.WRONG, record.SUSPECT)]
    table = Table(title=f"times as fast as {REFERENCE}: {given.baseline} and now", title_justify="left")
    for name in ("row", "verdict", "before", "now"):
        table.add_column(name)
    for change in found:
        table.add_row(change.row, change.verdict, ratio(change.before), ratio(change.after))
    console.print(table)
    for entry in made["missing"]:
        console.print(f"  {entry['operator']} {entry['backend']}: {entry['reason']}", markup=False, soft_wrap=True)
    verdict = overall(found, bool(wrong))
    console.print(f"\ngate: {verdict} (exit code {EXIT_CODES[verdict]}); record: {given.output}")
    return EXIT_CODES[verdict]


def _wanted(row: Row, given: argparse.Namespace) -> bool:
    asked = {key: getattr(given, key) for key in ("operator", "backend", "device", "dtype", "case", "phase", "clock")}
    kept = row["backend"] == REFERENCE or not is_backend(row["backend"])
    return all(not names or row[key] in names or (key == "backend" and kept) for key, names in asked.items())
