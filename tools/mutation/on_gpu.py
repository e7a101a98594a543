"""Judge the mutants that only a GPU shows: `python -m tools.mutation --on-gpu`, on a machine that has one.

The ledger names them, each with the property that asks about it. Each is judged in a copy of the repository of its own,
where pytest runs that property alone. The unmutated backends must pass there, built and judged in the same way.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.base import CUDA
from harness.errors import Unavailable
from harness.report.cell import FAIL, PASS
from harness.running import environment
from tools.mutation.account import GPU_ONLY, Entry
from tools.mutation.judging import KILLED, STILLBORN, SURVIVED
from tools.mutation.operators import Mutant
from tools.mutation.sources import BACKENDS, OPERATOR, ROOT, SOURCES, Source

#: Records of such runs, which the score reads.
RECORDS = "results/*/mutation-on-gpu.json"
#: The dtype of these cells: large tensors take least memory in it.
DTYPE = "float16"
#: Copies that are built and judged at the same time.
_JOBS = 4
#: Seconds for a copy, its build included.
_LIMIT = 420.0
#: Folders that no cell reads.
_LEFT_OUT = ("docs", "results", "reports", "museum", "action", "__pycache__")


@dataclass(frozen=True)
class Job:
    """One copy: a mutant, or an unmutated backend where there is none, and the property that judges it."""

    host: str
    property: str
    mutant: Mutant | None = None


def jobs(ledger: Iterable[Entry]) -> list[Job]:
    """The mutants of the ledger that only a GPU shows, and before them each backend and property without a mutant."""
    entries = {entry.key: entry for entry in ledger if entry.kind == GPU_ONLY}
    found = [
        Job(entries[mutant.key].host or source.hosts[0], entries[mutant.key].seen_by, mutant)
        for source, mutant in _every_mutant()
        if mutant.key in entries
    ]
    return [*dict.fromkeys(Job(job.host, job.property) for job in found), *found]


def run(ledger: Iterable[Entry], folder: Path) -> dict[str, Any]:
    """The record of all jobs. Raises Unavailable if a backend without a mutant does not pass, or cannot be judged."""
    began = time.monotonic()
    with ThreadPoolExecutor(_JOBS) as pool:
        rows = list(pool.map(lambda each: _judged(folder / f"copy-{each[0]}", each[1]), enumerate(jobs(ledger))))
    for row in rows:
        if not row["id"] and row["status"] != SURVIVED:
            raise Unavailable(f"the unmutated {row['host']} was {row['status']} by {row['property']}: {row['message']}")
    return {
        "schema": 1,
        "environment": environment.describe(),
        "seconds": round(time.monotonic() - began, 1),
        "unmutated": [row for row in rows if not row["id"]],
        "mutants": [row for row in rows if row["id"]],
    }


def noticed(root: Path = ROOT) -> dict[tuple[str, str, str], str]:
    """What the records say of each mutant that was noticed on a GPU, by its file and its two lines."""
    found = {}
    for path in sorted(root.glob(RECORDS)):
        record = json.loads(path.read_text())
        gpu = record["environment"]["gpu"] or "a GPU"
        for row in record["mutants"]:
            if row["status"] == KILLED:
                found[row["file"], row["before"], row["after"]] = f"{gpu}: {row['message']}"
    return found


def _every_mutant() -> Iterator[tuple[Source, Mutant]]:
    for source in SOURCES:
        for mutant in source.drawn(everything=True)[0]:
            yield source, mutant


def _judged(tree: Path, job: Job) -> dict[str, Any]:
    """The outcome of a job, as a row of the record."""
    began = time.monotonic()
    shutil.copytree(ROOT, tree, ignore=_ignored)
    mutant = job.mutant
    if mutant is not None:
        (tree / BACKENDS.relative_to(ROOT) / mutant.file).write_text(mutant.text)
    report = tree / "report.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "tests/conformance",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--report={report}",
    ]
    place = [f"--operator={OPERATOR}", f"--backend={job.host}", f"--device={CUDA}", f"--dtype={DTYPE}"]
    status, message = SURVIVED, f"was still running after {_LIMIT:.0f} s"
    try:
        subprocess.run(
            [*command, *place, f"--property={job.property}"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), *_path()])},
            capture_output=True,
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pass
    else:
        status, message = outcome(report)
    shutil.rmtree(tree, ignore_errors=True)
    return {
        "id": mutant.id if mutant else "",
        "file": mutant.file if mutant else "",
        "line": mutant.line if mutant else 0,
        "before": mutant.before if mutant else "",
        "after": mutant.after if mutant else "",
        "host": job.host,
        "property": job.property,
        "dtype": DTYPE,
        "status": status,
        "message": message,
        "seconds": round(time.monotonic() - began, 1),
    }


def outcome(report: Path) -> tuple[str, str]:
    """(status, message) by the one cell of a report.

    Raises Unavailable if there is none, or if this machine cannot judge it: nothing would be known of the mutant.
    """
    cells = json.loads(report.read_text())["cells"] if report.exists() else []
    if len(cells) != 1:
        raise Unavailable(f"pytest judged {len(cells)} cells in a copy of the repository, but should judge 1")
    verdict, reason = cells[0]["verdict"], cells[0]["reason"]
    message = reason.splitlines()[0] if reason else ""
    if verdict == PASS:
        return SURVIVED, message
    if verdict == FAIL:
        return (STILLBORN if "does not build" in message else KILLED), message
    raise Unavailable(f"{cells[0]['property']} of {cells[0]['backend']} was {verdict}: {message}")


def _ignored(folder: str, names: list[str]) -> set[str]:
    hidden = {name for name in names if name.startswith(".") or name == "__pycache__"}
    return hidden | ({name for name in names if name in _LEFT_OUT} if Path(folder) == ROOT else set())


def _path() -> list[str]:
    return [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place and Path(place) != ROOT]
