"""The properties of a quick run: what `tools.quick_set` computed from the faults of the zoo and from measured costs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("quick.json")


@dataclass(frozen=True)
class Quick:
    """The names of the properties, and the share of the zoo's faults that they notice.

    `in_each_dtype` are those of them that are judged in each dtype; the others are judged in the first alone. `cost` is
    in seconds of a processor, and has other properties too.
    """

    properties: tuple[str, ...]
    in_each_dtype: tuple[str, ...]
    share: float
    cost: Mapping[str, float]


@cache
def quick() -> Quick:
    """The quick run, from its file."""
    facts = json.loads(FILE.read_text())
    return Quick(tuple(facts["properties"]), tuple(facts["in_each_dtype"]), facts["share"], facts["cost"])
