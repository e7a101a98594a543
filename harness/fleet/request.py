"""What a worker is asked: plain data, which goes to another process or another machine."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

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
