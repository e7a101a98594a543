"""Sizes around the integers of a source: see `harness.judging.constants`.

Beyond a constant c a fast path begins, or a tail that is no multiple of a block. Sizes beyond a multiple come first,
because a tail is what is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, count
from math import gcd, prod
from random import Random

from harness.judging.constants import LEAST
from harness.judging.ratios import factors_of, in_ratios, in_ratios_of_lengths, multiples
from harness.judging.scenario import Scenario
from harness.judging.scenarios import elements, representative
from spec.contract import Operator

#: Sizes around a constant, as factor and addend.
_AROUND = ((1, 1), (2, 1), (1, 0), (1, -1))
#: The next multiple of this is one of most small blocks: of 2, 3, 4, 6, 8, 12, 16, 24 and 48.
_BLOCK = 48
#: What has no factor in common with this is no multiple of most blocks.
_FACTORS = 2 * 3 * 5 * 7
#: Elements of all tensors of a call at most, and product of its sizes: an oracle then takes up to a fifth of a second.
VOLUME = 2**17
#: Elements of all larger calls together: their oracles take some ten seconds.
LARGE = 2**24
#: What all other sizes are beside a constant itself.
_EQUAL = 7
#: What a step that the reference loops over counts, in elements: it takes two milliseconds.
_STEP = 2**11
#: Steps of a loop beyond which expected results take seconds: each step is made in Python, in every run behind them.
_LONG = 128
#: What any call counts at least: a millisecond or two.
_CALL = 2**15
#: A tensor between inputs and outputs that has so many times as many elements as these is a square of sizes.
_SQUARE = 4


def sizes_around(operator: Operator, constants: Sequence[int]) -> list[tuple[str, int]]:
    """A symbol and its size, the most telling first; without sizes that the contract's own cases ask."""
    known = {(symbol, size) for case in operator.cases if "size" in case.tags for symbol, size in case.sizes.items()}
    wanted = (lambda c, factor=factor, more=more: factor * c + more for factor, more in _AROUND)
    return [found for size in wanted for found in _each(operator, constants, size) if found not in known]


def tails(operator: Operator, constants: Sequence[int]) -> list[tuple[str, int]]:
    """The same for the first size beyond each constant that is no multiple of small blocks."""
    return _each(operator, constants, lambda c: _no_multiple(c + 1))


def beyond(operator: Operator, constants: Sequence[int]) -> list[tuple[str, int]]:
    """The same for that size and the first one that is a multiple."""
    tail, whole = (lambda c: _no_multiple(c + 1)), (lambda c: -(-c // _BLOCK) * _BLOCK)
    return list(dict.fromkeys(pair for c in constants for size in (tail, whole) for pair in _each(operator, [c], size)))


def themselves(operator: Operator, constants: Sequence[int]) -> list[tuple[str, int]]:
    """The same for each constant itself."""
    return _each(operator, constants, lambda c: c)


def _each(operator: Operator, constants: Sequence[int], size: Callable[[int], int]) -> list[tuple[str, int]]:
    """Each symbol with the size for each constant; and for its part, where a dimension is some times the symbol."""
    factors = {symbol: {1, *factors_of(operator, symbol)} for symbol in operator.symbols()}
    return list(
        dict.fromkeys(
            (symbol, size(c // factor))
            for c in constants
            for symbol in operator.symbols()
            for factor in sorted(factors[symbol])
            if factor == 1 or c // factor >= LEAST
        )
    )


def exactly(operator: Operator, constants: Sequence[int]) -> Iterator[Scenario]:
    """Calls for each constant itself, as one size or as two, the other sizes equal: outputs then have the shapes of
    inputs, whose memory a function may take for them. Where these are too many elements, the other sizes are small.
    """
    usual = representative(operator).sizes
    equal = {symbol: usual[symbol] if symbol in operator.sequential else _EQUAL for symbol in operator.symbols()}
    symbols = operator.symbols()
    for c in constants:
        for chosen in (*((symbol,) for symbol in symbols), *combinations(symbols, 2)):
            for others, what in ((equal, "equal"), (usual, "small")):
                every = {**others, **dict.fromkeys(chosen, c)}
                if volume(operator, every) <= VOLUME:
                    yield _scenario(every, f"{'-'.join(chosen)}-{c}-others-{what}", c)
                    break


def small(operator: Operator, sizes: Iterable[tuple[str, int]]) -> Iterator[Scenario]:
    """A call for each size whose volume is usual, the other sizes small."""
    for symbol, size in sizes:
        every = {**representative(operator).sizes, symbol: size}
        if volume(operator, every) <= VOLUME:
            yield _scenario(every, f"{symbol}-{size}", size)


def of_no_oracle(operator: Operator, sizes: Iterable[tuple[str, int]], most: int, room: int) -> Iterator[Scenario]:
    """The same for calls whose results nobody compares: of at most so many elements each, and so many together."""
    for symbol, size in sizes:
        every = {**representative(operator).sizes, symbol: size}
        cost = max(*elements(operator, every), _of_steps(operator, every))
        if cost <= min(most, room):
            room -= cost
            yield _scenario(every, f"{symbol}-{size}", size)


def large(operator: Operator, *sizes: Iterable[tuple[str, int]]) -> Iterator[Scenario]:
    """Calls for the other sizes as long as there is room: of the first group first, and of each the smallest first."""
    room, seen = LARGE, set[tuple[str, int]]()
    for group in sizes:
        found = []
        for symbol, size in dict.fromkeys(group):
            every = {**representative(operator).sizes, symbol: size}
            if (symbol, size) not in seen and volume(operator, every) > VOLUME:
                found.append((volume(operator, every), symbol, size, every))
        seen |= {call[1:3] for call in found}
        for cost, symbol, size, every in sorted(found, key=lambda call: call[:3]):
            if cost <= room:
                room -= cost
                yield _scenario(every, f"{symbol}-{size}", size)


def is_long(operator: Operator, scenario: Scenario) -> bool:
    """Whether its expected results take seconds because the reference loops over so many steps."""
    sizes = dict(scenario.sizes)
    return bool(operator.sequential) and prod(sizes[symbol] for symbol in operator.sequential) > _LONG


def affordable(operator: Operator, scenarios: Iterable[Scenario], room: int) -> list[Scenario]:
    """These calls, or of too many elements some of them, always the same."""
    every = list(scenarios)
    costs = [max(volume(operator, dict(scenario.sizes)), _CALL) for scenario in every]
    chosen = []
    for number in range(len(every)) if sum(costs) <= room else Random(0).sample(range(len(every)), len(every)):
        if costs[number] <= room:
            room -= costs[number]
            chosen.append(number)
    return [every[number] for number in sorted(chosen)]


def ratios(operator: Operator, constants: Sequence[int]) -> Iterator[Scenario]:
    """Every two sizes in a ratio, the smallest one beyond a constant: a layout must not be guessed from sizes."""
    symbols, usual = operator.symbols(), representative(operator).sizes
    for c in constants:

        def fits(sizes: Mapping[str, int]) -> bool:
            every = {**usual, **sizes}
            return volume(operator, every) <= (VOLUME if not operator.sequential else 2 * VOLUME)

        found = list(in_ratios(symbols, c + 1, fits))
        there = {multiple for sizes in found for multiple in multiples(sizes)}
        for pair in combinations(symbols, 2):  # all sizes beyond it may be too many elements
            found += [sizes for sizes in in_ratios(pair, c + 1, fits) if not multiples(sizes) <= there]
        for number, sizes in enumerate(found, start=1):
            yield _scenario({**usual, **sizes}, f"ratios-{number}-beyond-{c}", c)


def ratios_of_lengths(operator: Operator, constants: Sequence[int]) -> Iterator[Scenario]:
    """The same for lengths of dimensions that are some times a size."""
    usual = representative(operator).sizes
    for c in constants:
        found = in_ratios_of_lengths(operator, c + 1, lambda sizes: volume(operator, {**usual, **sizes}) <= VOLUME)
        for number, sizes in enumerate(found, start=1):
            yield _scenario({**usual, **sizes}, f"ratios-of-lengths-{number}-beyond-{c}", c)


def _no_multiple(size: int) -> int:
    """The first size from this one on that is no multiple of small blocks."""
    return next(found for found in count(size) if gcd(found, _FACTORS) == 1)


def _scenario(sizes: dict[str, int], name: str, seed: int) -> Scenario:
    return Scenario(tuple(sizes.items()), name=name, seed=seed)


def volume(operator: Operator, sizes: dict[str, int]) -> int:
    """How long an oracle takes, in elements: those of all inputs and outputs, or what is more.

    That is the product of the sizes, a square of sizes that the contract lists as saved, or the steps of a loop.
    """
    outside, between = elements(operator, sizes)
    squares = 2 * _SQUARE * between if between > _SQUARE * outside else 0
    return max(outside, prod(sizes.values()), squares, _of_steps(operator, sizes))


def _of_steps(operator: Operator, sizes: dict[str, int]) -> int:
    """What the steps of a loop count."""
    return _STEP * prod(sizes[symbol] for symbol in operator.sequential) if operator.sequential else 0
