"""The suite that made a report: its names in order, and the claim of each property.

A reader draws a report from this, so that an old report looks the same whatever suite is installed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class KnownProperty:
    """A property: its claim, the extra view that shows it (or ""), its level, and its figures in the mutation run.

    `dtypes` and `devices` are where it is asked, and `why_only` says why; empty if it is asked everywhere.
    Of the `asked` mutants that reached the property, it noticed `noticed`; it was the first to notice `faults`
    hand-written faults. All three are 0 without a recorded mutation run.
    """

    name: str
    claim: str
    view: str = ""
    level: str = "production"
    noticed: int = 0
    asked: int = 0
    faults: int = 0
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    why_only: str = ""


@dataclass(frozen=True)
class Suite:
    """The names of the suite, each kind in its own order. All are empty for a report without them."""

    operators: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    properties: tuple[KnownProperty, ...] = ()

    @classmethod
    def of(cls, record: dict[str, Any]) -> Suite:
        """From the `suite` of a valid report."""
        lists = {name: tuple(record[name]) for name in ("operators", "backends", "devices", "dtypes")}
        return cls(**lists, properties=tuple(_known(entry) for entry in record["properties"]))

    def names(self, axis: str) -> tuple[str, ...]:
        """The operators, backends, devices, dtypes or properties; `axis` is the singular."""
        match axis:
            case "property":
                return tuple(found.name for found in self.properties)
            case "operator":
                return self.operators
            case "backend":
                return self.backends
            case "device":
                return self.devices
            case "dtype":
                return self.dtypes
        raise ValueError(f"axis was {axis!r}, but should be operator, backend, device, dtype or property")

    def ordered(self, axis: str, there: Iterable[str]) -> list[str]:
        """The given names, each once: first the suite's names in its order, then the others, sorted."""
        left = set(there)
        first = [name for name in self.names(axis) if name in left]
        return first + sorted(left.difference(first))

    @property
    def views(self) -> dict[str, list[str]]:
        """The properties of each view."""
        found: dict[str, list[str]] = {}
        for known in self.properties:
            if known.view:
                found.setdefault(known.view, []).append(known.name)
        return found


def _known(entry: dict[str, Any]) -> KnownProperty:
    names = {field.name for field in fields(KnownProperty)}
    found = {name: value for name, value in entry.items() if name in names}
    row: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    return KnownProperty(**row)
