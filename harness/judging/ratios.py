"""Sizes in ratios: every two sizes of an operator equal, or one a small multiple of the other.

A layout that is guessed from sizes is wrong where two of them are equal, or where one is a multiple of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations, product

#: How many times as large as another one a size is.
RATIOS = (1, 2, 3, 4)


def in_ratios(
    symbols: Sequence[str], base: int, possible: Callable[[Mapping[str, int]], bool]
) -> Iterator[dict[str, int]]:
    """Multiples of `base` for these symbols: few calls in which every two have every ratio that is possible."""
    made = (
        dict(zip(symbols, (base * factor for factor in factors), strict=True))
        for factors in product(RATIOS, repeat=len(symbols))
    )
    every = [sizes for sizes in made if possible(sizes)]
    missing = {pair for sizes in every for pair in multiples(sizes)}
    while missing:
        sizes = max(every, key=lambda sizes: len(missing & multiples(sizes)))
        missing -= multiples(sizes)
        yield sizes


def multiples(sizes: Mapping[str, int]) -> set[tuple[str, str, int]]:
    """Which size is which multiple of which other."""
    return {
        (one, other, ratio)
        for one, other in permutations(sizes, 2)
        for ratio in RATIOS
        if sizes[one] == ratio * sizes[other]
    }
