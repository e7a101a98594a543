"""Results as Parquet, for those who analyse them with pandas, polars or DuckDB."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

from harness.fleet.input import require_pyarrow
from harness.fleet.outcome import CandidateResult


def write(results: Iterable[CandidateResult], path: Path) -> None:
    """One row for each result, with the columns of the SQLite file. Raises Unavailable without pyarrow, OSError."""
    arrow, parquet = require_pyarrow(), require_pyarrow("pyarrow.parquet")
    types = {"right": arrow.bool_(), "exit_code": arrow.int64(), "attempts": arrow.int64()}
    types |= dict.fromkeys(("score", "seconds", "cpu_seconds"), arrow.float64())
    schema = arrow.schema([(field.name, types.get(field.name, arrow.string())) for field in fields(CandidateResult)])
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(arrow.Table.from_pylist([asdict(found) for found in results], schema=schema), path)
