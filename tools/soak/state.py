"""The state of a soak: what was called so far, where each place goes on, and the finds. A JSON file."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.report import strict_json
from harness.report.atomic_write import write_atomically
from harness.report.schema import breaches
from tools.soak.batch import Counts, Outcome, Place

KIND, SCHEMA = "soak", 1
STATE = Path(__file__).with_name("state.schema.json")
FIND = Path(__file__).with_name("find.schema.json")
#: Finds that are kept of one implementation and tensor in one place; all are counted.
ALIKE = 5

_KEY = ("operator", "form", "dtype", "device")


class State:
    """What a soak knows. `places` has a row for each place and device."""

    def __init__(self, record: dict[str, Any] | None = None) -> None:
        found = record or {"runs": [], "places": [], "finds": []}
        self.runs: list[dict[str, Any]] = found["runs"]
        self.places: list[dict[str, Any]] = found["places"]
        self.finds: list[dict[str, Any]] = found["finds"]

    @classmethod
    def read(cls, path: Path) -> State:
        """The state in that file. Raises UsageError, which says what is wrong."""
        record = strict_json.load(path, f"there is no state {path}; `python -m tools.soak --state {path}` writes one")
        found = (record.get("kind"), record.get("schema")) if isinstance(record, dict) else type(record).__name__
        if found != (KIND, SCHEMA):
            raise UsageError(f"{path} was {found!r}, but should be a state of kind {KIND!r}, version {SCHEMA}")
        wrong = breaches(record, STATE)
        for number, find in enumerate(record["finds"] if not wrong else ()):
            wrong += [f"finds[{number}]: {problem}" for problem in breaches(find, FIND)]
        keys = [tuple(row[name] for name in _KEY) for row in record["places"]] if not wrong else []
        wrong += [f"places has {'/'.join(key)} twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
        if wrong:
            raise UsageError(f"{path} is no state of this soak: {strict_json.first_three(wrong)}")
        return cls(record)

    def write(self, path: Path) -> None:
        """Write the state, one place, run and find on each line."""
        record = {"kind": KIND, "schema": SCHEMA, "runs": self.runs, "places": self.places, "finds": self.finds}
        write_atomically(path, strict_json.written(record))

    def calls(self, device: str | None = None) -> int:
        """Calls on that device; on all of them without one."""
        return sum(row["calls"] for row in self.places if device in (None, row["device"]))

    def row(self, place: Place, device: str) -> dict[str, Any]:
        """The row of that device at that place; a new one is added."""
        key = (place.operator, place.form, place.dtype, device)
        for row in self.places:
            if tuple(row[name] for name in _KEY) == key:
                return row
        new = {**dict(zip(_KEY, key, strict=True)), "next_seed": 0, "implementations": [], **asdict(Counts())}
        self.places.append(new)
        self.places.sort(key=lambda row: tuple(row[name] for name in _KEY))
        return new

    def next_seed(self, place: Place) -> int:
        """The number of the next batch."""
        seed: int = self.row(place, place.device)["next_seed"]
        return seed

    def add(self, place: Place, number: int, outcome: Outcome, where: dict[str, Any]) -> None:
        """Count a batch, whose number was `number`. `where` are the commit, torch and machine for its finds."""
        for device, counts in outcome.counts.items():
            row = self.row(place, device)
            row["next_seed"] = number + 1
            row["implementations"] = outcome.implementations.get(device, row["implementations"])
            for field in fields(Counts):
                total = row[field.name] + getattr(counts, field.name)
                row[field.name] = round(total, 3) if isinstance(total, float) else total
        for find in outcome.finds:
            if sum(_alike(find, other) for other in self.finds) < ALIKE:
                self.finds.append({**find, **where})


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[name] == other[name] for name in (*_KEY, "implementation", "verdict", "tensor"))
