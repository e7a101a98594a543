"""Candidates from a folder, a JSONL file or a Parquet file."""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import Unavailable, UsageError
from harness.fleet.item import Item

#: Errors of an input that are shown; of more the number is told.
_SHOWN = 10


def read(path: Path, defaults: Mapping[str, str]) -> list[Item]:
    """All candidates of the file or folder; `defaults` are for the fields that one leaves out.

    Raises UsageError, which names each line that cannot be read, and Unavailable for Parquet without pyarrow.
    """
    if path.is_dir():
        return _all(_of_folder(path), defaults, str(path))
    if not path.is_file():
        raise UsageError(f"{path} does not exist; give a folder of Python files, a .jsonl or a .parquet file")
    if path.suffix in (".jsonl", ".ndjson"):
        return _all(_of_lines(path), defaults, str(path))
    if path.suffix == ".parquet":
        return _all(_of_parquet(path), defaults, str(path))
    raise UsageError(f"{path} should be a folder of Python files, or its name should end in .jsonl or .parquet")


def of_iterable(entries: Iterable[Any], defaults: Mapping[str, str]) -> list[Item]:
    """All candidates of an iterable of `Item` or of dicts with its fields. Raises UsageError."""
    named = ((f"candidate {number}", str(number), entry) for number, entry in enumerate(entries, 1))
    return _all(named, defaults, "the iterable")


#: (where it stands, for messages; the id that it has if it names none; the entry itself or why it cannot be read)
_Row = tuple[str, str, Any]


def _all(rows: Iterable[_Row], defaults: Mapping[str, str], where: str) -> list[Item]:
    found: dict[str, Item] = {}
    places: dict[str, str] = {}
    wrong = []
    for place, fallback, entry in rows:
        try:
            if isinstance(entry, UsageError):
                raise entry
            item = Item.of(entry, defaults, fallback)
            if item.id in found:
                raise UsageError(f"the id {item.id!r} is that of {places[item.id]} too")
        except UsageError as error:
            wrong.append(f"{place}: {error}")
            continue
        found[item.id], places[item.id] = item, place
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        count = f"{len(wrong)} candidate{'s' if len(wrong) > 1 else ''} of {where} cannot be read, so none was judged"
        raise UsageError("\n  ".join([f"{count}:", *wrong[:_SHOWN], *more]))
    if not found:
        raise UsageError(f"{where} has no candidate")
    return list(found.values())


def _of_folder(folder: Path) -> Iterator[_Row]:
    """Each Python file whose name does not begin with `_` or `.`, in the order of names, subfolders too."""
    for file in sorted(folder.rglob("*.py")):
        name = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(("_", ".")) for part in name.parts):
            yield str(file), str(name), {"path": str(file), **_only_function(file)}


def _only_function(file: Path) -> dict[str, str]:
    """The public function of a file that has only one. It is not imported."""
    try:
        body = ast.parse(file.read_bytes()).body
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return {}  # the verdict will say that it does not import
    names = [found.name for found in body if isinstance(found, ast.FunctionDef) and not found.name.startswith("_")]
    return {"function": names[0]} if len(names) == 1 else {}


def _of_lines(path: Path) -> Iterator[_Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"line {number}", f"line-{number}", _parsed(line)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError:
        return UsageError("it is not UTF-8")
    except (ValueError, RecursionError) as error:
        return UsageError(f"it is not JSON: {error}")


def _of_parquet(path: Path) -> Iterator[_Row]:
    parquet = require_pyarrow("pyarrow.parquet")
    try:
        rows = parquet.read_table(path).to_pylist()
    except (ValueError, OSError) as error:  # pyarrow.ArrowInvalid is a ValueError
        raise UsageError(f"{path} is no Parquet file that can be read: {error}") from None
    for number, row in enumerate(rows, 1):
        yield f"row {number}", f"row-{number}", row


def require_pyarrow(module: str = "pyarrow") -> Any:
    """The module of pyarrow. Raises Unavailable if it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Unavailable('Parquet needs pyarrow: pip install "lltm-conformance[fleet]"') from None
