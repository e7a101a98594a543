"""JSON documents, read more strictly than by Python's `json`, and written with a line for each entry of a long list."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import UsageError

#: The largest file that is read. The report of a whole run has 3 MB.
MOST_BYTES = 64 * 2**20


def load(path: Path, absent: str) -> Any:
    """The content of the file. Raises UsageError if it is no JSON, and with the text `absent` if there is no file."""
    try:
        if path.stat().st_size > MOST_BYTES:
            size = f"{path.stat().st_size / 2**20:,.0f} MB, but should have at most {MOST_BYTES / 2**20:,.0f} MB"
            raise UsageError(f"{path} has {size}: give a report of fewer cells")
        return json.loads(
            path.read_text(encoding="utf-8"),
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=_without_repeats,
        )
    except FileNotFoundError:
        raise UsageError(absent) from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except RecursionError:
        raise UsageError(f"{path} cannot be read: its values are nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: {error}") from None


def written(document: dict[str, Any]) -> str:
    """The document as text. Each entry of a top-level list is one line, so that a diff shows which entry changed."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list):
            entries = ",\n".join(f"  {json.dumps(entry, allow_nan=False)}" for entry in value)
            lines.append(f" {json.dumps(key)}: [{chr(10) + entries + chr(10) + ' ' if value else ''}]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def first_three(wrong: list[str]) -> str:
    """The first three problems of a document, and how many more there are."""
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return "; ".join(wrong[:3]) + more


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"it has {constant}, which is not valid JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError for a repeated name: readers differ in which of the two values they use."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has {next(name for name in names if names.count(name) > 1)!r} twice in one object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
