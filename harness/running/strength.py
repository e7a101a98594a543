"""How strong the properties are: what part of wrong programs each noticed that had passed all cheaper ones.

The figures are of a mutation run, in which properties are asked one after the other, the cheapest first, until one
fails (docs/mutation.md). What one of them noticed, a dearer one would often have noticed too.
`python -m tools.mutation --draw RECORD` writes `strength.json`; until there is one, nothing is known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("strength.json")


@dataclass(frozen=True)
class Strength:
    """How many of the mutants that came to a property it noticed, and how many hand-written faults it was first to."""

    noticed: int
    asked: int
    faults: int


def strengths(path: Path = FILE) -> dict[str, Strength]:
    """By the name of the property; empty where no mutation run was drawn."""
    if not path.exists():
        return {}
    return {name: Strength(**figures) for name, figures in json.loads(path.read_text())["properties"].items()}
