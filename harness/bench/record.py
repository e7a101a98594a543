"""The bench record: a JSON document with a row for each measurement; docs/report-format.md describes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.report import strict_json
from harness.report.atomic_write import write_atomically
from harness.report.schema import breaches

FILE = Path(__file__).with_name("bench.schema.json")
KIND, SCHEMA = "bench", 1
#: Why something has no row: it returned something wrong, its times cannot be believed, or it could not be timed here.
WRONG, SUSPECT, NOT_TIMED = "wrong", "suspect", "not-timed"
Row = dict[str, Any]
#: Rows that were timed together agree in these fields.
GROUP = ("operator", "device", "dtype", "case", "phase", "clock", "threads")


def write(record: dict[str, Any], path: Path) -> None:
    """Write a record as JSON, one row on each line."""
    write_atomically(path, strict_json.written(record))


def read(path: Path, kind: str = KIND, option: str = "") -> dict[str, Any]:
    """A record of that kind; a bench record is checked against its schema. Raises UsageError, which says what is wrong.

    `option` is the name of the option that gave the file, if any: the error then begins with it.
    """
    try:
        return _read(path, kind)
    except UsageError as error:
        raise UsageError(f"{option}: {error}" if option else str(error)) from None


def _read(path: Path, kind: str) -> dict[str, Any]:
    record = strict_json.load(path, f"there is no record {path}; `python -m harness {kind} -o {path}` writes one")
    found = (record.get("kind"), record.get("schema")) if isinstance(record, dict) else type(record).__name__
    if found != (kind, SCHEMA):
        raise UsageError(f"{path} was {found!r}, but should be a record of kind {kind!r}, version {SCHEMA}")
    wrong = breaches(record, FILE) if kind == KIND else []
    if wrong:
        raise UsageError(f"{path} is no bench record of this suite: {strict_json.first_three(wrong)}")
    return dict(record)


def find(rows: Iterable[Row], **wanted: Any) -> Row | None:
    """The first row with these fields; None if there is none."""
    return next((row for row in rows if all(row[key] == value for key, value in wanted.items())), None)


def groups(rows: Iterable[Row]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows that were timed together, by their common fields, in the order of the record."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in GROUP), []).append(row)
    return found
