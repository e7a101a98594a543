"""A variant of a fault: a function that draws literals, what they mean, and a witness. Its template has its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import FACTS, Facts


@dataclass(frozen=True)
class Draft:
    """The literals of one fault, in the template's names and in words."""

    words: str
    literals: Mapping[str, Any]
    witness: Witness
    dtype: torch.dtype = torch.float32


@dataclass(frozen=True)
class Variant:
    """`once` marks a variant of which one in a draw is enough, since its file takes long to import."""

    kind: str
    name: str
    operators: tuple[str, ...]
    draft: Callable[[Random, Facts], Draft]
    once: bool = False


VARIANTS: list[Variant] = []


def variant(kind: str, *operators: str, once: bool = False) -> Callable[[Callable[[Random, Facts], Draft]], Any]:
    """Register a function as a variant of that class for these operators; for all four if none is named."""

    def register(draft: Callable[[Random, Facts], Draft]) -> Callable[[Random, Facts], Draft]:
        VARIANTS.append(Variant(kind, draft.__name__, operators or tuple(FACTS), draft, once))
        return draft

    return register


def log_uniform(rng: Random, low: int, high: int) -> int:
    """A whole number between low and high: each factor of two is as likely as another."""
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def a_block(rng: Random, high: int = 512) -> int:
    """A block's size: a power of two, or any other number."""
    powers = [2**n for n in range(1, 10) if 2**n <= high]
    return rng.choice(powers) if rng.random() < 0.5 else log_uniform(rng, 2, high)


def beyond(rng: Random, least: int, block: int) -> int:
    """A size from `least` on that is no multiple of `block`, with half of the last block in it."""
    return -(-least // block) * block + rng.randint((block + 1) // 2, block - 1)
