"""What the records of a GPU say of the code of today, and where they speak of older code only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from backends.devices import CUDA
from harness.report.cell import DECLARED, NOT_RUN, PASS
from harness.report.report import Report
from harness.sanitizing.compute_sanitizer import TOOLS
from tools.scoreboard import ROOT, records
from tools.unanswered import Key, asked, key, said_on_request

CELLS, TOOL_CELLS, TIMINGS, SWEPT = "cells", "cells of compute-sanitizer", "timings", "points of the sweep"


@dataclass(frozen=True)
class Answer:
    """What a record says about an implementation; another record with the same `what` and `key` says it too."""

    what: str
    key: Key
    record: str
    commit: str
    time: str


class Older(NamedTuple):
    """Statements of one record about an implementation whose `files` differ in the tree."""

    backend: str
    operator: str
    what: str
    record: str
    commit: str
    files: tuple[str, ...]


@cache
def answers(root: Path = ROOT) -> tuple[Answer, ...]:
    """What all records of a GPU say, the latest last. Failures are no answers: they are judged again anyway."""
    wanted = set(asked())
    there = {about[:2] for about in wanted}
    found = []
    for path, record in records(root):
        environment = record.get("environment", {})
        if not environment.get("gpu") or not environment.get("commit"):
            continue
        commit, time = str(environment["commit"])[:7], str(environment.get("time", ""))
        name = path.relative_to(root / "results").as_posix()
        found += [
            Answer(what, about, name, commit, time)
            for what, about in _said(path, record)
            if (about in wanted if what == CELLS else about[:2] in there)
        ]
    return tuple(sorted(found, key=lambda answer: answer.time))


def older(found: Iterable[Answer], changed: Callable[[str, str, str], tuple[str, ...]]) -> Counter[Older]:
    """How many statements are about older code in each record that says them last.

    A statement is left out where any record says it of the code of today. `changed(backend, operator, commit)` names
    the files that differ.
    """
    by_key: dict[tuple[str, Key], list[Answer]] = {}
    for answer in found:
        by_key.setdefault((answer.what, answer.key), []).append(answer)
    counted: Counter[Older] = Counter()
    for (what, (operator, backend, _, _)), those in by_key.items():
        if all(changed(backend, operator, answer.commit) for answer in those):
            last = those[-1]
            files = changed(backend, operator, last.commit)
            counted[Older(backend, operator, what, last.record, last.commit, files)] += 1
    return counted


def _said(path: Path, record: dict[str, Any]) -> Iterator[tuple[str, Key]]:
    if "cells" in record:
        for cell in Report.read(path).cells:
            if cell.device == CUDA and cell.verdict in (PASS, DECLARED, NOT_RUN) and not said_on_request(cell):
                yield TOOL_CELLS if cell.property in TOOLS else CELLS, key(cell)
    elif record.get("kind") == "bench":
        for row in record["rows"]:
            if row["device"] == CUDA:
                about = f"{row['case']} {row['phase']} {row['clock']}"
                yield TIMINGS, (row["operator"], row["backend"], about, row["dtype"])
    elif record.get("kind") == "sweep":
        for row in record["rows"]:
            yield SWEPT, (record["operator"], record["backend"], f"{row['sizes']} {row['phase']}", row["dtype"])
