"""The record of a run: one JSON file, one row a cell. Every table is drawn from it and from nothing else."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NoReturn

from harness import environment, schema
from harness.errors import UsageError
from harness.judge import FAIL, NO_EVIDENCE, WORST_FIRST, Cell

SCHEMA = schema.version()
#: Facts of the environment in which reports must agree to stand in one table.
_SAME = ("torch", "python", "gpu", "cpu", "commit")


@dataclass(frozen=True)
class Report:
    """A run: what it was made with, whether it came to its end, and its cells."""

    environment: dict[str, Any]
    complete: bool
    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, cells: Iterable[Cell], complete: bool = True) -> Report:
        """A report of these cells on this machine, in a fixed order. Of two on one place the worse one stands."""
        return cls(environment.describe(), complete, _one_each(cells))

    def write(self, path: Path) -> None:
        """Write atomically: a reader sees the old file or the whole new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        record = {"schema": SCHEMA, "environment": jsonable(self.environment), "complete": self.complete}
        record["cells"] = [jsonable(asdict(cell)) for cell in self.cells]
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(record, file, indent=1, allow_nan=False)
                file.write("\n")
            os.chmod(name, 0o644)
            os.replace(name, path)
        finally:
            Path(name).unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> Report:
        """Raises UsageError, which says what is wrong with the file."""
        record = load(path)
        wrong = schema.problems(record)
        if wrong:
            more = f"; and {len(wrong) - 3} more, see `python -m harness validate {path}`" if len(wrong) > 3 else ""
            raise UsageError(f"{path} is not a report of this suite: {'; '.join(wrong[:3])}{more}")
        names = {field.name for field in fields(Cell)}
        rows = jsonable(record["cells"])
        cells = tuple(Cell(**{key: value for key, value in row.items() if key in names}) for row in rows)
        return cls(jsonable(record["environment"]), record["complete"], cells)

    @classmethod
    def merged(cls, reports: Sequence[Report]) -> Report:
        """One report of several runs on one machine. Of two verdicts on one cell the worse one stands.

        Raises UsageError where the machines or their software differ: their figures must not stand in one table.
        """
        first = reports[0].environment
        for other in reports[1:]:
            for fact in _SAME:
                one, another = first.get(fact), other.environment.get(fact)
                if one != another:
                    raise UsageError(f"these reports cannot be merged: {fact} was {one!r} and {another!r}")
        cells = _one_each(cell for report in reports for cell in report.cells)
        return cls(first, all(report.complete for report in reports), cells)

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
    try:
        record = json.loads(path.read_text(), parse_constant=_refuse, parse_float=_finite)
    except FileNotFoundError:
        raise UsageError(f"there is no report {path}; a run writes one, `nox -s cpu` for example") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        found = record.get("schema") if isinstance(record, dict) else type(record).__name__
        raise UsageError(f"{path} has schema {found!r}, but should have {SCHEMA}")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"it has {constant}, which no other reader takes")


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _one_each(cells: Iterable[Cell]) -> tuple[Cell, ...]:
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
