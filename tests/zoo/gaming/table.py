"""The table of attacks in docs/method.md: `python -m tests.zoo.gaming.table` writes it anew."""

from __future__ import annotations

from pathlib import Path

from harness.rendering.tables import insert
from tests.zoo.gaming.registry import ATTACKS

DOCUMENT = Path(__file__).parents[3] / "docs" / "method.md"
MARKER = "attacks"


def table() -> str:
    """One row for each attack."""
    rows = [f"| {one.mistake} | {one.source} | {one.outcome} | {one.by} |" for one in ATTACKS]
    return "\n".join(["| attack | source | outcome | by what |", "|---|---|---|---|", *rows])


def written(text: str) -> str:
    """The page with the table of today."""
    return insert(table(), text, MARKER)


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
