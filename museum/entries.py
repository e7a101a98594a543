"""The entries of the museum: one TOML file for each package, checked before anything is installed."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from harness.errors import UnknownName, UsageError
from harness.report import schema

HERE = Path(__file__).parent
FOLDER = HERE / "entries"
SCHEMA = HERE / "entry.schema.json"

CAUGHT, MISSED = EXPECTATIONS = ("caught", "missed")


@dataclass(frozen=True)
class Entry:
    """One defect of one package.

    `broken` is a release that has the defect; `fixed` is the first release without it, empty if there is none yet.
    `operator` is the name of a contract of ours; `reference` and `example` are `FILE.py:FUNCTION` below museum/. One
    of both is given. `candidate` is `FILE.py:FUNCTION` below museum/adapters. `judged_by` are the properties that are
    judged, each with a regular expression that the first line of its reason matches where it finds this defect. With
    `expected` missed, the defect is known not to be found, and `why` says why. `needs` are installed beside both
    releases, `beside[version]` beside that one.
    """

    name: str
    package: str
    broken: str
    fixed: str
    issue: str
    defect: str
    candidate: str
    judged_by: dict[str, str]
    device: str
    dtype: str
    expected: str = CAUGHT
    why: str = ""
    operator: str = ""
    reference: str = ""
    example: str = ""
    needs: tuple[str, ...] = ()
    beside: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def versions(self) -> tuple[str, ...]:
        """The releases to judge: the one with the defect, and the one without it if there is one."""
        return (self.broken, self.fixed) if self.fixed else (self.broken,)

    def requirements(self, version: str) -> tuple[str, ...]:
        """What is installed to judge that release, the release first."""
        return (f"{self.package}=={version}", *self.needs, *self.beside.get(version, ()))


def read(folder: Path = FOLDER) -> tuple[Entry, ...]:
    """Every entry of the folder, in the order of the files' names. Raises UsageError, which says what is wrong."""
    found = [entry for file in sorted(folder.glob("*.toml")) for entry in _of_file(file)]
    seen: dict[str, str] = {}
    for entry in found:
        if entry.name in seen:
            raise UsageError(f"two entries have the name {entry.name!r}, but each should have a name of its own")
        seen[entry.name] = entry.package
    return tuple(found)


def selected(entries: Sequence[Entry], names: Iterable[str], packages: Iterable[str]) -> tuple[Entry, ...]:
    """The entries of these names and these packages; all without any. Raises UnknownName."""
    names, packages = tuple(names), tuple(packages)
    for kind, asked, known in (
        ("entry", names, {entry.name for entry in entries}),
        ("package", packages, {entry.package for entry in entries}),
    ):
        for name in asked:
            if name not in known:
                raise UnknownName(kind, name, known)
    if not names and not packages:
        return tuple(entries)
    return tuple(entry for entry in entries if entry.name in names or entry.package in packages)


def _of_file(file: Path) -> list[Entry]:
    try:
        record = tomllib.loads(file.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    wrong = schema.breaches(json.loads(json.dumps(record, default=str)), SCHEMA)
    if wrong:
        raise UsageError(f"{file}: {'; '.join(wrong[:3])}")
    shared = {key: value for key, value in record.items() if key != "entry"}
    found = [_entry(file, {**shared, **row}) for row in record["entry"]]
    judged = {version for entry in found for version in entry.versions}
    unknown = [version for version in record.get("beside", {}) if version not in judged]
    if unknown:
        raise UsageError(
            f"{file}: beside has the version {unknown[0]!r}, which no entry has: {', '.join(sorted(judged))}"
        )
    return found


def _entry(file: Path, row: dict[str, Any]) -> Entry:
    beside = {version: tuple(others) for version, others in row.get("beside", {}).items()}
    given = {**row, "needs": tuple(row.get("needs", ())), "beside": beside}
    entry = Entry(**{"fixed": "", **{part.name: given[part.name] for part in fields(Entry) if part.name in given}})
    where = f"{file}: the entry {entry.name!r}"
    if bool(entry.operator) == bool(entry.reference):
        raise UsageError(f"{where} has operator {entry.operator!r} and reference {entry.reference!r}: give one of both")
    if bool(entry.reference) != bool(entry.example):
        raise UsageError(f"{where} has example {entry.example!r}, but should have one with a reference, and only then")
    if (entry.expected == MISSED) != bool(entry.why):
        raise UsageError(
            f"{where} is expected {entry.expected} and has why {entry.why!r}: a miss says why, no other does"
        )
    if entry.broken == entry.fixed:
        raise UsageError(f"{where} has broken and fixed {entry.broken}, but should have two releases")
    for name, pattern in entry.judged_by.items():
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{where}: judged_by.{name} was {pattern!r}, which is no expression: {error}") from error
    return entry
