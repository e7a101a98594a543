"""JSON documents: read more strictly than Python does, and written with a line for each entry of a long list."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

from harness.errors import UsageError


def load(path: Path, absent: str) -> Any:
    """What the file holds. Raises UsageError where that is no JSON; with the text `absent` where there is no file."""
    try:
        return json.loads(
            path.read_text(encoding="utf-8"),
            parse_constant=_refuse,
            parse_float=_finite,
            object_pairs_hook=_once,
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
    """The document as text. An entry of a list at the top is a line, so that a difference shows which one changed."""
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
    raise ValueError(f"it has {constant}, which no other reader takes")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; of two values under one name a reader would take one, and nobody would know which."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has {next(name for name in names if names.count(name) > 1)!r} twice in one object")
    return found


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)
