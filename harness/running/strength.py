"""How strong each property is: the share of mutants it noticed among those that had passed all cheaper properties.

The figures come from a mutation run, which checks properties one after the other, the cheapest first, until one fails
(docs/mutation.md). A more expensive property would often have noticed the same mutant.
`python -m tools.mutation --draw RECORD` writes `strength.json`; without that file nothing is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("strength.json")


@dataclass(frozen=True)
class Strength:
    """How many of the mutants that reached a property it noticed, and how many faults it was the first to notice."""

    noticed: int
    asked: int
    faults: int


def strengths(path: Path = FILE) -> dict[str, Strength]:
    """By the name of the property; empty if the file does not exist."""
    if not path.exists():
        return {}
    return {name: Strength(**figures) for name, figures in json.loads(path.read_text())["properties"].items()}
