"""Sizes in ratios: every two sizes of an operator equal, or one a small multiple of the other.

A layout that is guessed from sizes is wrong where two of them are equal, or where one is a multiple of another. So it
is with the lengths of dimensions, of which one may be some times a size, as three gates are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, permutations, product
from math import gcd

from spec.contract import Operator

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


def factors_of(operator: Operator, symbol: str) -> set[int]:
    """Such k that some dimension is k times the symbol."""
    dimensions = {length for arg in (*operator.inputs, *operator.outputs) for length in arg.shape}
    found = (re.fullmatch(rf"(\d+) ?\* ?{symbol}", length) for length in dimensions)
    return {int(match[1]) for match in found if match}


def in_ratios_of_lengths(
    operator: Operator, base: int, possible: Callable[[Mapping[str, int]], bool]
) -> Iterator[dict[str, int]]:
    """Sizes of at least `base` at which k times one of them has a ratio to all others, or to each other one.

    Where these are too large, k times that size is at least `base`, and not the size itself. Sizes which have such a
    ratio themselves are left out.
    """
    symbols = operator.symbols()
    for symbol in symbols:
        others = [other for other in symbols if other != symbol]
        factors = factors_of(operator, symbol)
        for part, other_part in _ratios_of(factors):
            scales = [-(-base // min(one, other_part)) for one in (part, min(factors) * part)]
            together = {symbol: part * scales[0], **dict.fromkeys(others, other_part * scales[0])}
            if possible(together):
                yield together
                continue
            for other in others:
                pairs = ({symbol: part * scale, other: other_part * scale} for scale in scales)
                yield from islice((sizes for sizes in pairs if possible(sizes)), 1)


def _ratios_of(factors: set[int]) -> list[tuple[int, int]]:
    """A size to another one, in lowest terms, where some times it has a ratio to the other: 1 to 6, 2 to 3."""
    of_length = [pair for k in sorted(factors) for ratio in RATIOS for pair in ((ratio, k), (1, ratio * k))]
    lowest = dict.fromkeys((one // gcd(one, other), other // gcd(one, other)) for one, other in of_length)
    return [(one, other) for one, other in lowest if min(one, other) > 1 or max(one, other) not in RATIOS]
