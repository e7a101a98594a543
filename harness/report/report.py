"""The report of a run: one JSON file, one row for each cell. Every table is drawn from it alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.report import schema, strict_json
from harness.report.atomic_write import write_atomically
from harness.report.cell import WORST_FIRST, Cell
from harness.report.levels import PRODUCTION, exit_reason
from harness.report.shards import RunPlan, numbers
from harness.report.suite import Suite
from harness.report.upgrade import UPGRADED, upgraded

SCHEMA = schema.version()
#: The most cells of a report that is read. A whole run has 6,000; each takes 0.01 ms to check and 0.3 ms to draw.
MOST_CELLS = 100_000
#: Facts of the environment that must be equal in reports that are merged.
SAME = ("torch", "python", "gpu", "cpu", "commit")


#: The suite of a report that does not record one.
NO_SUITE = Suite()


@dataclass(frozen=True)
class Report:
    """A run: its environment, whether it is complete, its cells, and which part of a larger run it is.

    `plan` is None where the cells are not those of one run of the command line. `suite` is what the suite knew.
    `required` is the last level that was required for exit code 0.
    """

    environment: dict[str, Any]
    complete: bool
    cells: tuple[Cell, ...]
    plan: RunPlan | None = None
    suite: Suite = NO_SUITE
    required: str = PRODUCTION

    @classmethod
    def of(cls, cells: Iterable[Cell], environment: dict[str, Any], suite: Suite, required: str = PRODUCTION) -> Report:
        """A complete report of these cells, in a fixed order. Of two cells with the same key the worse one is kept."""
        return cls(environment, True, one_each(cells), suite=suite, required=required)

    def write(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the whole new one. Raises OSError."""
        record = {"schema": SCHEMA, "environment": jsonable(self.environment), "complete": self.complete}
        record["required"] = self.required
        if self.plan is not None:
            record["plan"] = jsonable(asdict(self.plan))
        record["suite"] = jsonable(asdict(self.suite))
        write_atomically(
            path, strict_json.written({**record, "cells": [jsonable(asdict(cell)) for cell in self.cells]})
        )

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read and check a file. Raises UsageError, which says what is wrong with it."""
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
        return cls(jsonable(record["environment"]), record["complete"], cells, plan, suite, record["required"])

    def why_partial(self) -> str:
        """Why cells are missing, as a sentence; empty if none is."""
        if self.complete:
            return ""
        plan = self.plan
        if plan is None or (plan.begun == (1,) and plan.shards == 1):
            asked = f" ({len(self.cells)} of {plan.asked} cells)" if plan and plan.asked > len(self.cells) else ""
            return f"the run did not finish{asked}"
        broken = [number for number in plan.begun if number not in plan.finished]
        absent = [number for number in plan.missing if number not in broken]
        parts = [f"{_shards(absent, plan)} missing"] if absent else []
        parts += [f"{_shards(broken, plan)} not finished"] if broken else []
        return " and ".join(parts)

    @property
    def ok(self) -> bool:
        """Whether the run is green, by the rule of `levels.exit_reason`."""
        return not exit_reason(self)

    def count(self, verdict: str) -> int:
        return sum(cell.verdict == verdict for cell in self.cells)


def load(path: Path) -> dict[str, Any]:
    """The JSON document of a report, upgraded to the present version. Its contents are not checked yet.

    Raises UsageError if it is no report, or if this suite cannot read its version.
    """
    record = strict_json.load(path, f"there is no report {path}; a run writes one, `nox -s cpu` for example")
    version = record.get("schema") if isinstance(record, dict) else type(record).__name__
    if version not in (*UPGRADED, SCHEMA):
        readable = " or ".join(map(str, (*UPGRADED, SCHEMA)))
        raise UsageError(f"{path} has schema {version!r}, but should have {readable}")
    cells, kind = record.get("cells"), record.get("kind")
    if cells is None and isinstance(kind, str):
        raise UsageError(f"{path} is a record of the kind {kind!r}, but should be a report, which has cells")
    if isinstance(cells, list) and len(cells) > MOST_CELLS:
        count = f"{len(cells):,} cells, but should have at most {MOST_CELLS:,}"
        raise UsageError(f"{path} has {count}: give a report of fewer operators, backends or dtypes")
    return upgraded(record)


def _shards(found: Sequence[int], plan: RunPlan) -> str:
    return f"shard{'s' if len(found) > 1 else ''} {numbers(found)} of {plan.shards} {'are' if len(found) > 1 else 'is'}"


def refuse_other_files(option: str, path: Path) -> None:
    """Raise UsageError if `path` holds something other than a report: only reports may be overwritten."""
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder, but should be a file")
    if path.exists() and path.stat().st_size:
        try:
            load(path)
        except UsageError as error:
            why = f"would overwrite a file that is no report ({error})"
            raise UsageError(f"{option} {path} {why}; name another") from None


def one_each(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """One cell for each key, sorted: the worse of two, since a process may die after its cell was recorded."""
    found: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        there = found.get(cell.key)
        if there is None or WORST_FIRST.index(cell.verdict) < WORST_FIRST.index(there.verdict):
            found[cell.key] = cell
    return tuple(found[key] for key in sorted(found))


def jsonable(value: Any) -> Any:
    """The value in a form that JSON and UTF-8 can hold: infinity and NaN become words, and half a surrogate pair, which
    an error message may contain, becomes a question mark."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {jsonable(str(key)): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(entry) for entry in value]
    return value
