"""The files of candidates, as a report records them: two functions of one name are not the same candidate."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.candidate import Candidate

Files = dict[str, dict[str, str | None]]


def described(candidates: Iterable[Candidate]) -> Files:
    """By `function/operator`: the `source` as given, and the `sha256` of its file (null if there is none)."""
    return {
        f"{found.name}/{found.operator}": {"source": found.text, "sha256": _digest(file_of(found.where))}
        for found in candidates
    }


def of_function(function: Callable[..., Any], name: str, operator: str) -> Files:
    """The same for a function of this process; null where it has no file, as in a notebook."""
    for file in file_of_function(function) or ():
        return {f"{name}/{operator}": {"source": f"{operator}={file}:{name}", "sha256": _digest(file)}}
    return {f"{name}/{operator}": {"source": None, "sha256": None}}


def file_of_function(function: Callable[..., Any]) -> tuple[Path, ...] | None:
    """The file that defines a function of this process; None if there is none, as in a notebook.

    Of a decorated function it is the file of the function itself, not that of the decorator.
    """
    file = None
    with suppress(TypeError, ValueError):
        file = inspect.getsourcefile(inspect.unwrap(function))
    return (Path(file),) if file is not None and Path(file).is_file() else None


def file_of(where: str) -> Path:
    """The file of a candidate's file or module, found without importing it or its packages: they are a candidate's."""
    if where.endswith(".py"):
        return Path(where)
    path = Path(*where.split("."))
    for root in map(Path, (*sys.path, os.getcwd())):
        for place in (root / path.with_suffix(".py"), root / path / "__init__.py"):
            if place.is_file():
                return place
    return path


def _digest(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None
