"""What a worker is asked, and what it answers: plain data, which goes to another process or another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.fleet.item import Item


@dataclass(frozen=True)
class Request:
    """Judge this candidate with these options of `judge`, and end it after `limit` seconds."""

    function: str
    source: str
    path: str
    operator: str
    reference: str
    example: str
    options: list[str]
    limit: float

    @classmethod
    def of(cls, item: Item, options: list[str], limit: float) -> Request:
        """The request for an item."""
        known = {name: value for name, value in asdict(item).items() if name != "id"}
        return cls(**known, options=options, limit=limit)

    def arguments(self, folder: Path) -> list[str]:
        """The options of `judge`. Writes the candidate into the folder, under a name that no option can misread."""
        file = folder / "candidate.py"
        if self.source:
            file.write_text(self.source, encoding="utf-8", newline="")
        else:
            file.symlink_to(self.path)
        place = f"{file}:{self.function}"
        found = [f"--candidate={self.operator}={place}" if self.operator else f"--candidate={place}"]
        found += [f"--reference={self.reference}"] if self.reference else []
        found += [f"--example={self.example}"] if self.example else []
        # One process for one candidate: the fleet spreads candidates over the cores.
        return [*found, f"--report={folder / 'report.json'}", "-n0", *self.options]


@dataclass(frozen=True)
class Reply:
    """How the judge of a candidate ended: by an exit code or by a signal, and the text of its report, if there is one.

    `seconds` are those of the clock, `cpu_seconds` those of processors, of the processes of the candidate too. `said`
    is the end of what it printed.
    """

    exit_code: int | None
    signal: int
    timed_out: bool
    seconds: float
    cpu_seconds: float
    report: str
    said: str

    @property
    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Reply:
        """From JSON. Raises TypeError if fields are missing."""
        return cls(**record)
