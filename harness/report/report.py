"""The report of a run: one JSON file, one row a cell. Every table is drawn from it and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.report import schema, strict_json
from harness.report.atomic_write import write_atomically
from harness.report.cell import FAIL, NO_EVIDENCE, WORST_FIRST, Cell
from harness.report.shards import RunPlan, numbers
from harness.report.suite import Suite
from harness.report.upgrade import UPGRADED, upgraded

SCHEMA = schema.version()
#: Facts of the environment in which reports must agree to stand in one table.
SAME = ("torch", "python", "gpu", "cpu", "commit")


#: Of a report that does not say what its suite knew.
NO_SUITE = Suite()


@dataclass(frozen=True)
class Report:
    """A run: what it was made with, whether every cell is there, its cells, and which part of a larger run it is.

    `plan` is None where the cells are not those of one run of the command line. `suite` is what the suite knew.
    """

    environment: dict[str, Any]
    complete: bool
    cells: tuple[Cell, ...]
    plan: RunPlan | None = None
    suite: Suite = NO_SUITE

    @classmethod
    def of(cls, cells: Iterable[Cell], environment: dict[str, Any], suite: Suite) -> Report:
        """A complete report of these cells, in a fixed order. Of two with one key the worse one stands."""
        return cls(environment, True, one_each(cells), suite=suite)

    def write(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the whole new one. Raises OSError."""
        record = {"schema": SCHEMA, "environment": jsonable(self.environment), "complete": self.complete}
        if self.plan is not None:
            record["plan"] = jsonable(asdict(self.plan))
        record["suite"] = jsonable(asdict(self.suite))
        write_atomically(
            path, strict_json.written({**record, "cells": [jsonable(asdict(cell)) for cell in self.cells]})
        )

    @classmethod
    def read(cls, path: Path) -> Report:
        """Raises UsageError, which says what is wrong with the file."""
        record = load(path)
        wrong = schema.problems(record)
        if wrong:
            see = f", see `python -m harness validate {path}`" if len(wrong) > 3 else ""
            raise UsageError(f"{path} is not a report of this suite: {strict_json.first_three(wrong)}{see}")
        names = {field.name for field in fields(Cell)}
        rows = jsonable(record["cells"])
        cells = tuple(Cell(**{key: value for key, value in row.items() if key in names}) for row in rows)
        plan = RunPlan.of(record["plan"]) if "plan" in record else None
        suite = Suite.of(record["suite"]) if "suite" in record else NO_SUITE
        return cls(jsonable(record["environment"]), record["complete"], cells, plan, suite)

    def why_partial(self) -> str:
        """Why cells are missing, in words; empty where none is."""
        if self.complete:
            return ""
        plan = self.plan
        if plan is None or (plan.begun == (1,) and plan.shards == 1):
            asked = f" with {len(self.cells)} of {plan.asked} cells" if plan and plan.asked > len(self.cells) else ""
            return f"the run did not come to its end{asked}"
        broken = [number for number in plan.begun if number not in plan.finished]
        absent = [number for number in plan.missing if number not in broken]
        parts = [f"{_shards(absent, plan)} not in it"] if absent else []
        parts += [f"{_shards(broken, plan)} not at an end"] if broken else []
        return " and ".join(parts)

    @property
    def ok(self) -> bool:
        """Whether everything that ran holds, with evidence. What was not run says nothing."""
        return self.complete and not any(cell.verdict in (FAIL, NO_EVIDENCE) for cell in self.cells)

    def count(self, verdict: str) -> int:
        return sum(cell.verdict == verdict for cell in self.cells)


def load(path: Path) -> dict[str, Any]:
    """The document of a report as this version has it, whose parts may still be wrong. An older one is upgraded.

    Raises UsageError where it is no report, or one of a version that this suite does not read.
    """
    record = strict_json.load(path, f"there is no report {path}; a run writes one, `nox -s cpu` for example")
    version = record.get("schema") if isinstance(record, dict) else type(record).__name__
    if version not in (*UPGRADED, SCHEMA):
        readable = " or ".join(map(str, (*UPGRADED, SCHEMA)))
        raise UsageError(f"{path} has schema {version!r}, but should have {readable}")
    return upgraded(record)


def _shards(found: Sequence[int], plan: RunPlan) -> str:
    return f"shard{'s' if len(found) > 1 else ''} {numbers(found)} of {plan.shards} {'are' if len(found) > 1 else 'is'}"


def refuse_other_files(option: str, path: Path) -> None:
    """Raise UsageError where `path` holds something that is no report: nothing else is written over."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder, but should be a file")
    if path.exists() and path.stat().st_size:
        try:
            load(path)
        except UsageError as error:
            why = f"would overwrite a file that is no report ({error})"
            raise UsageError(f"{option} {path} {why}; name another") from None


def one_each(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """One cell a place, sorted: of two verdicts the worse one. A process may die after its cell was recorded."""
    found: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        there = found.get(cell.key)
        if there is None or WORST_FIRST.index(cell.verdict) < WORST_FIRST.index(there.verdict):
            found[cell.key] = cell
    return tuple(found[key] for key in sorted(found))


def jsonable(value: Any) -> Any:
    """What JSON and UTF-8 can carry: infinity and NaN become words, which a reader cannot mistake for a number, and
    half a character, as an error message may hold it, a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {jsonable(str(key)): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return value
