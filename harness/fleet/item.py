"""One candidate of a fleet, as it was given: its source or its file, and what it is judged by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError

#: The most characters of a candidate's id: it is shown in tables.
LONGEST_ID = 500
#: The most characters of a candidate's source.
LONGEST_SOURCE = 10_000_000


@dataclass(frozen=True)
class Item:
    """A candidate. Either `source`, the text of a Python file, or `path`, such a file; `function` is in it.

    It is judged by the contract of `operator`, or by `reference` and `example`: `FILE.py:FUNCTION` or
    `package.module:FUNCTION`. Files are looked for from the folder of the process that makes the item.
    """

    id: str
    function: str
    source: str = ""
    path: str = ""
    operator: str = ""
    reference: str = ""
    example: str = ""

    @classmethod
    def of(cls, entry: Any, defaults: Mapping[str, str], fallback_id: str) -> Item:
        """Read a row of a file, or an entry of an iterable; `defaults` stand for what it leaves out.

        Raises UsageError, which names the field, what it was and what it should be.
        """
        if isinstance(entry, cls):
            return entry.checked()
        if not isinstance(entry, Mapping):
            raise UsageError(f"a candidate was {_shown(entry)}, but should be an object with the fields {_known()}")
        names = {field.name for field in fields(cls)}
        given = {str(name): value for name, value in entry.items() if value is not None}
        unknown = sorted(set(given) - names)
        if unknown:
            raise UsageError(f"unknown field {_shown(unknown[0])}; known fields: {_known()}")
        for name, value in given.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} was {_shown(value)}, but should be a text")
        own = {name: value for name, value in given.items() if value}
        inherited = dict(defaults)
        if "operator" in own:
            inherited.pop("reference", None)
            inherited.pop("example", None)
        if "reference" in own:
            inherited.pop("operator", None)
            inherited.pop("example", None)
        return cls(**{"id": fallback_id, "function": "", **inherited, **own}).checked()

    def checked(self) -> Item:
        """The same with complete paths. Raises UsageError."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, str):
                raise UsageError(f"{field.name} was {_shown(value)}, but should be a text")
            try:
                value.encode()
            except UnicodeEncodeError:
                raise UsageError(f"{field.name} has half a surrogate pair, which UTF-8 cannot hold") from None
            if field.name != "source" and "\0" in value:
                raise UsageError(f"{field.name} was {_shown(value)}, but should have no zero byte")
        if not self.id or len(self.id) > LONGEST_ID:
            raise UsageError(f"id has {len(self.id)} characters, but should have 1 to {LONGEST_ID}")
        if len(self.source) > LONGEST_SOURCE:
            raise UsageError(f"source has {len(self.source):,} characters, but should have {LONGEST_SOURCE:,} at most")
        if bool(self.source) is bool(self.path):
            raise UsageError("a candidate should have either source, the text of a Python file, or path, such a file")
        if not self.function.isidentifier():
            raise UsageError(f"function was {_shown(self.function)}, but should be the name of a Python function")
        if bool(self.operator) is bool(self.reference):
            raise UsageError("a candidate should have either operator or reference (--operator or --reference)")
        if self.example and not self.reference:
            raise UsageError("example was given without reference, the function whose arguments it returns")
        if "=" in self.operator:
            raise UsageError(f"operator was {_shown(self.operator)}, but should be a name")
        places = {name: _complete(name, getattr(self, name)) for name in ("reference", "example")}
        return Item(**{**asdict(self), **places, "path": _file("path", self.path) if self.path else ""})

    @property
    def digest(self) -> str:
        """Of all that its verdict depends on, its files included. Raises UsageError if a file cannot be read."""
        files = [self.path, *(_file_of(text) for text in (self.reference, self.example))]
        record = {**asdict(self), "files": [_digest(file) for file in files]}
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def _known() -> str:
    return ", ".join(field.name for field in fields(Item))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _file_of(text: str) -> str:
    """The file of `FILE.py:FUNCTION`; empty for a module."""
    where, _, _ = text.rpartition(":")
    return where if where.endswith(".py") else ""


def _complete(name: str, text: str) -> str:
    """`FILE.py:FUNCTION` with the complete path."""
    if not text:
        return ""
    where, colon, function = text.rpartition(":")
    if not (where and colon and function.isidentifier()):
        raise UsageError(f"{name} was {_shown(text)}, but should be FILE.py:FUNCTION or package.module:FUNCTION")
    return f"{_file(name, where)}:{function}" if where.endswith(".py") else text


def _file(name: str, text: str) -> str:
    path = Path(text)
    if path.suffix != ".py" or not path.is_file():
        raise UsageError(f"{name} was {_shown(text)}, but should be a Python file that exists")
    return str(path.resolve())


def _digest(file: str) -> str:
    if not file:
        return ""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or error}") from None
