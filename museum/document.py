"""Draw the tables of docs/museum.md from the record of a run: `python -m museum --draw RECORD`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness.rendering import tables
from museum import entries
from museum.entries import CAUGHT, MISSED
from museum.verdicts import PASSES

DOCUMENT = Path("docs/museum.md")


def insert(record: dict[str, Any], document: str) -> str:
    """`document` with everything between its markers redrawn."""
    for name, text in drawn(record).items():
        document = tables.insert(text, document, name)
    return document


def drawn(record: dict[str, Any]) -> dict[str, str]:
    """The texts by the names of their markers."""
    rows = record["entries"]
    waiting = [entry for entry in entries.read() if entry.name not in {row["name"] for row in rows}]
    return {
        "run": _run(record),
        "caught": _caught(rows),
        "missed": _missed(rows) if any(row["expected"] == MISSED for row in rows) else "None is recorded.\n",
        "defects": _defects(rows),
        "waiting": _waiting(waiting),
    }


def _run(record: dict[str, Any]) -> str:
    rows = record["entries"]
    caught = [row for row in rows if row["expected"] == CAUGHT]
    repaired = [row for row in rows if row["fixed"]["version"]]
    passed = sum(row["fixed"]["outcome"] == PASSES for row in repaired)
    made = (row["environment"] for row in rows)
    machines = {(one["torch"], one["python"], one["gpu"] or one["cpu"]) for one in made if one}
    said = "; ".join(f"torch {torch}, Python {python}, {machine}" for torch, python, machine in sorted(machines))
    return (
        f"{len(rows)} defects of {len({row['package'] for row in rows})} packages were judged. "
        f"{sum(row['holds'] for row in caught)} of {len(caught)} that should be caught were caught for the expected "
        f"reason; {len(rows) - len(caught)} are known misses. {passed} of {len(repaired)} repaired releases passed the "
        f"same properties. {said}.\n"
    )


def _caught(rows: Sequence[dict[str, Any]]) -> str:
    return _table(
        ["package", "with the defect", "repaired in", "judged by", "found by", "what the suite said"],
        *(
            [
                row["package"],
                row["broken"]["version"],
                row["fixed"]["version"] or "no release",
                f"`{row['judged by']}`",
                ", ".join(row["properties"]),
                _shortened(row["broken"]["detail"].partition(": ")[2]),
            ]
            for row in rows
            if row["expected"] == CAUGHT
        ),
    )


def _missed(rows: Sequence[dict[str, Any]]) -> str:
    return _table(
        ["package", "with the defect", "repaired in", "judged by", "asked", "why it is missed"],
        *(
            [
                row["package"],
                row["broken"]["version"],
                row["fixed"]["version"] or "no release",
                f"`{row['judged by']}`",
                ", ".join(row["properties"]),
                row["why"],
            ]
            for row in rows
            if row["expected"] == MISSED
        ),
    )


def _defects(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        f"- `{row['name']}` ({row['package']} {row['broken']['version']}): {row['defect']}. [Report]({row['issue']})"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _waiting(waiting: Sequence[entries.Entry]) -> str:
    lines = [
        f"- `{entry.name}` ({entry.package} {entry.broken}), on {entry.device}: {entry.defect}. [Report]({entry.issue})"
        for entry in waiting
    ]
    return "\n".join(lines or ["None."]) + "\n"


def _shortened(text: str) -> str:
    """The sentence without the call and the measure."""
    return re.split(r" \(\w+ error | \[", text)[0]


def _table(head: list[str], *rows: list[str]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
