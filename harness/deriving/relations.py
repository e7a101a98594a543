"""Lengths that change only together because one is made of others: `3*h` and `h + f` of a recurrent cell.

Each length alone is refused by the reference, so it looks like a number. Here some lengths are taken for symbols and
the others for simple expressions of them, as the example's lengths permit. What the reference takes with other lengths
for every symbol, and for all at once, holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, islice, product

from spec.contract import Sizes, evaluate

#: The lengths of the symbols are tried as these multiples: what must be even stays so.
_TIMES = (2, 3)
#: Factors of a symbol in an expression.
_FACTORS = range(2, 9)
#: Lengths that may be related, and how many assignments of expressions are tried for each choice of symbols.
_MOST_LENGTHS, _MOST_TRIED = 6, 64


def related(
    names: Mapping[int, str], whole: Mapping[int, int], accepts: Callable[[Mapping[int, int]], bool]
) -> dict[int, str]:
    """The expression of each length that is a symbol or made of symbols; lengths that stay numbers are left out.

    `names` has a name for each length, in case it is a symbol; `whole` the length that the example has in its place,
    which differs if it was shortened. `accepts` says whether the reference takes other lengths in place of these.
    """
    lengths = [length for length in names if length > 1][:_MOST_LENGTHS]
    for count in range(len(lengths) - 1, 0, -1):
        for symbols in combinations(lengths, count):
            for found in islice(_assignments(symbols, lengths, names, whole), _MOST_TRIED):
                if _holds(symbols, found, names, accepts):
                    return {**{length: names[length] for length in symbols}, **found}
    return {}


def _assignments(
    symbols: Sequence[int], lengths: Sequence[int], names: Mapping[int, str], whole: Mapping[int, int]
) -> Iterator[dict[int, str]]:
    """Expressions of the lengths that are no symbols, those with an expression alone; each symbol occurs in one."""
    short = {names[length]: length for length in symbols}
    long = {names[length]: whole[length] for length in symbols}
    choices: dict[int, list[str]] = {}
    for length in lengths:
        if length not in symbols:
            possible = [
                text
                for text in _expressions(list(short))
                if evaluate(text, short) == length and evaluate(text, long) == whole[length]
            ]
            if possible:
                choices[length] = possible
    for chosen in product(*choices.values()):
        occurring = {word for text in chosen for word in text.split() for word in word.split("*")}
        if set(short) <= occurring:
            yield dict(zip(choices, chosen, strict=True))


def _expressions(symbols: Sequence[str]) -> Iterator[str]:
    """Sums of two and three, multiples, products, multiples and one more, one more."""
    for count in (2, 3):
        for some in combinations(symbols, count):
            yield " + ".join(some)
    for symbol in symbols:
        for factor in _FACTORS:
            yield f"{factor}*{symbol}"
            yield from (f"{factor}*{symbol} + {other}" for other in symbols if other != symbol)
        yield f"{symbol} + 1"
    for one, other in combinations(symbols, 2):
        yield f"{one}*{other}"


def _holds(
    symbols: Sequence[int],
    found: Mapping[int, str],
    names: Mapping[int, str],
    accepts: Callable[[Mapping[int, int]], bool],
) -> bool:
    """Whether the reference takes other lengths of each symbol, and of all at once."""

    def fits(sizes: Sizes) -> bool:
        changed = {length: sizes[names[length]] for length in symbols}
        return accepts({**changed, **{length: int(evaluate(text, sizes)) for length, text in found.items()}})

    own = {names[length]: length for length in symbols}
    alone = all(fits({**own, symbol: times * own[symbol]}) for symbol in own for times in _TIMES)
    return alone and fits({symbol: (2 + place) * length for place, (symbol, length) in enumerate(own.items())})
