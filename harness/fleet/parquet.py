"""Results as Parquet, for those who analyse them with pandas, polars or DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

from harness.fleet.input import require_pyarrow
from harness.fleet.outcome import Result


def write(results: Iterable[Result], path: Path) -> None:
    """One row for each result, with the columns of the SQLite file. Raises Unavailable without pyarrow, OSError."""
    arrow, parquet = require_pyarrow(), require_pyarrow("pyarrow.parquet")
    types = {"right": arrow.bool_(), "score": arrow.float64(), "seconds": arrow.float64()}
    whole = {"exit_code": arrow.int64(), "attempts": arrow.int64()}
    names = [field.name for field in fields(Result)]
    schema = arrow.schema([(name, {**types, **whole}.get(name, arrow.string())) for name in names])
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist([asdict(found) for found in results], schema=schema), path)
