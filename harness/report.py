"""The record of a run: one JSON file, one row a cell. Every table is drawn from it and from nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness import documents, environment, schema
from harness.errors import UsageError
from harness.files import write_atomically
from harness.judge import FAIL, NO_EVIDENCE, WORST_FIRST, Cell
from harness.plan import Plan, numbers

SCHEMA = schema.version()
#: Facts of the environment in which reports must agree to stand in one table.
SAME = ("torch", "python", "gpu", "cpu", "commit")


@dataclass(frozen=True)
class Report:
    """A run: what it was made with, whether every cell is there, its cells, and which part of what it is.

    `plan` is None where cells are not those of one run of the command line.
    """

    environment: dict[str, Any]
    complete: bool
    cells: tuple[Cell, ...]
    plan: Plan | None = None

    @classmethod
    def of(cls, cells: Iterable[Cell], complete: bool = True) -> Report:
        """A report of these cells on this machine, in a fixed order. Of two on one place the worse one stands."""
        return cls(environment.describe(), complete, one_each(cells))

    def write(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the whole new one. Raises OSError."""
        record = {"schema": SCHEMA, "environment": jsonable(self.environment), "complete": self.complete}
        if self.plan is not None:
            record["plan"] = jsonable(asdict(self.plan))
        record["cells"] = [jsonable(asdict(cell)) for cell in self.cells]
        write_atomically(path, json.dumps(record, indent=1, allow_nan=False) + "\n")

    @classmethod
    def read(cls, path: Path) -> Report:
        """Raises UsageError, which says what is wrong with the file."""
        record = load(path)
        wrong = schema.problems(record)
        if wrong:
            see = f", see `python -m harness validate {path}`" if len(wrong) > 3 else ""
            raise UsageError(f"{path} is not a report of this suite: {documents.told(wrong)}{see}")
        names = {field.name for field in fields(Cell)}
        rows = jsonable(record["cells"])
        cells = tuple(Cell(**{key: value for key, value in row.items() if key in names}) for row in rows)
        plan = Plan.of(record["plan"]) if "plan" in record else None
        return cls(jsonable(record["environment"]), record["complete"], cells, plan)

    @classmethod
    def merged(cls, reports: Sequence[Report]) -> Report:
        """One report of several runs on one machine. Of two verdicts on one cell the worse one stands.

        Raises UsageError where the machines or their software differ: their figures must not stand in one table.
        """
        first = reports[0].environment
        for other in reports[1:]:
            for fact in SAME:
                one, another = first.get(fact), other.environment.get(fact)
                if one != another:
                    raise UsageError(f"these reports cannot be merged: {fact} was {one!r} and {another!r}")
        cells = one_each(cell for report in reports for cell in report.cells)
        plan = reports[0].plan if len(reports) == 1 else None
        return cls(first, all(report.complete for report in reports), cells, plan)

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

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        from harness.rendering import summary  # it draws reports

        return summary.markdown(self)

    def count(self, verdict: str) -> int:
        return sum(cell.verdict == verdict for cell in self.cells)


def load(path: Path) -> dict[str, Any]:
    """The document of a report, whose parts may still be wrong. Raises UsageError where it is none of this version."""
    record = documents.load(path, f"there is no report {path}; a run writes one, `nox -s cpu` for example")
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise UsageError(f"{path} has schema {found!r}, but should have {SCHEMA}")
    return record


def _shards(found: Sequence[int], plan: Plan) -> str:
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
