"""What the records of a GPU say of the code of today, and where they speak of older code only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from backends.devices import CUDA
from harness.report.cell import DECLARED, NOT_RUN, PASS
from harness.sanitizing.compute_sanitizer import TOOLS
from tools.scoreboard import ROOT, records
from tools.unanswered import Key, asked, told

CELLS, TOOL_CELLS, TIMINGS, SWEPT = "cells", "cells of compute-sanitizer", "timings", "points of the sweep"


@dataclass(frozen=True)
class Answer:
    """What a record says about an implementation; another record with the same `what` and `key` says it too."""

    what: str
    key: Key
    record: str
    commit: str


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
    """What all records of a GPU say, of two that say the same the latest last.

    Failures are no answers: they are judged again anyway.
    """
    wanted = set(asked())
    there = {about[:2] for about in wanted}
    found = [
        Answer(TOOL_CELLS if each.cell.property in TOOLS else CELLS, about, each.record, each.commit)
        for about, those in told(root).items()
        for each in those
        if each.cell.verdict in (PASS, DECLARED, NOT_RUN)
    ]
    found += _timings(root)
    return tuple(each for each in found if (each.key in wanted if each.what == CELLS else each.key[:2] in there))


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


def _timings(root: Path) -> Iterator[Answer]:
    """What was timed on a GPU, the latest last."""
    timed = [(path, record) for path, record in records(root) if record.get("kind") in ("bench", "sweep")]
    for path, record in sorted(timed, key=lambda each: str(each[1]["environment"].get("time", ""))):
        name, commit = path.relative_to(root / "results").as_posix(), str(record["environment"]["commit"])[:7]
        for row in record["rows"]:
            if record["kind"] == "sweep":
                about = f"{row['sizes']} {row['phase']}"
                yield Answer(SWEPT, (record["operator"], record["backend"], about, row["dtype"]), name, commit)
            elif row["device"] == CUDA:
                about = f"{row['case']} {row['phase']} {row['clock']}"
                yield Answer(TIMINGS, (row["operator"], row["backend"], about, row["dtype"]), name, commit)
