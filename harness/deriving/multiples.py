"""Lengths of which a reference takes some alone: multiples, such as even ones, or those from a least one on.

Properties choose sizes of their own. So a symbol must have a meaning at every size: `x_1` of a reference that splits x
in two becomes `2*x_1`, and `x_2` of a convolution with three taps `x_2 + 2`. How many taps there are is a number: a
length that makes a result shorter, or that another one must not be shorter than, is that of a window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from harness.deriving.invariants import renamed
from harness.deriving.sizes import Call, caller, elements
from harness.deriving.values import Inputs, symbols_in
from harness.errors import UsageError
from spec.contract import Sizes, TensorArg

#: Multiples that are tried, least first, and how many of each the reference must take.
_UNITS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256)
_TIMES = (1, 2, 3, 5, 7)
#: Powers of 2 that show, for a message, that a reference takes them alone.
_POWERS = (0, 1, 2, 3, 5)
#: Largest least length that is looked for, and how much longer ones are tried: one of 1 may broadcast.
_LEAST, _LONGER = 64, range(1, 9)
#: Lengths of small calls that take the place of larger ones.
_SMALL = range(3, 11)
#: How many times as large as the small ones other sizes are, beside which a length must be taken too, and most elements
#: of a call with these.
_LARGER, _ELEMENTS = 4, 2**20


def with_fixed_windows(
    made: Inputs, lengths: Mapping[str, int], forward: Callable[..., tuple[Tensor, ...]]
) -> tuple[Inputs, dict[str, int], dict[str, int]]:
    """The inputs and the example's lengths without the symbols of windows, and those symbols with their lengths."""
    windows = {
        symbol: lengths.get(symbol, made.small[symbol])
        for symbol in symbols_in(made.args)
        if _is_window(made, symbol) or _fits_inside(made, symbol)
    }
    if not windows:
        return made, dict(lengths), {}
    names = {symbol: str(length) for symbol, length in windows.items()}
    args = tuple(renamed(arg, names) for arg in made.args)
    others = {symbol: length for symbol, length in lengths.items() if symbol not in windows}
    small = {symbol: length for symbol, length in made.small.items() if symbol not in windows}
    call = caller(args, forward)
    # A window may be longer than what was small beside a shorter one.
    small = small if _is_taken(call, small) else {symbol: others.get(symbol, n) for symbol, n in small.items()}
    return Inputs(args, small, call), others, windows


def _is_window(made: Inputs, symbol: str) -> bool:
    """Whether a result gets shorter as the symbol grows; with a stride not at once."""
    length, shapes = made.small[symbol], list[list[torch.Size]]()
    for tried in range(max(length - 3, 1), length + 5):
        try:
            shapes.append([result.shape for result in made.call({**made.small, symbol: tried})])
        except Exception:
            continue  # longer than what it slides over, perhaps
    return any(
        new < old
        for before, after in combinations(shapes, 2)
        for one, other in zip(before, after, strict=True)
        for old, new in zip(one, other, strict=False)
    )


def _fits_inside(made: Inputs, symbol: str) -> bool:
    """Whether it must not be longer than another length, and no result shows it: a window along what is reduced."""
    length, larger = made.small[symbol], {other: 2 * n for other, n in made.small.items()}
    if elements(larger, made.args) > _ELEMENTS or not _is_taken(made.call, {**larger, symbol: length}):
        return False
    longer = [length + more for more in _LONGER]
    refused = [tried for tried in longer if not _is_taken(made.call, {**made.small, symbol: tried})]
    taken = [tried for tried in refused if _is_taken(made.call, {**larger, symbol: tried})]
    found = (made.call({**larger, symbol: tried}) for tried in (length, *taken))
    return bool(taken) and len({tuple(result.shape for result in results) for results in found}) == 1


def in_units(
    where: str, made: Inputs, lengths: Mapping[str, int], forward: Callable[..., tuple[Tensor, ...]]
) -> tuple[Inputs, dict[str, int], dict[str, str]]:
    """The inputs and the example's lengths, so that every length of a symbol is taken; and what each of others is.

    Raises UsageError for a length of which the reference takes some, but not the multiples of any number.
    """
    units, least, refused = dict[str, int](), dict[str, int](), dict[str, int]()
    for symbol in symbols_in(made.args):
        units[symbol], least[symbol], refused[symbol] = _unit(where, made, lengths, symbol)
    names = {symbol: f"{unit}*{symbol}" for symbol, unit in units.items() if unit > 1}
    names |= {symbol: f"{symbol} + {more}" for symbol, more in least.items() if more}
    if not names:
        return made, dict(lengths), {}
    args = tuple(_in_units(arg, names) for arg in made.args)
    small = dict(made.small)
    for symbol in names:
        if least[symbol]:
            small[symbol] = max(small[symbol] - least[symbol], 2)
            continue
        others = {length for other, length in small.items() if other != symbol}
        times = [small[symbol] // units[symbol], *_TIMES[1:]]
        small[symbol] = next((one for one in times if one > 1 and one * units[symbol] not in others), 1)
    call = caller(args, forward)
    if not _is_taken(call, small):
        small = {symbol: length // units[symbol] - least[symbol] for symbol, length in made.small.items()}
    own = {symbol: n // units.get(symbol, 1) - least.get(symbol, 0) for symbol, n in lengths.items()}
    said = {symbol: f"{text}: the reference refuses {refused[symbol]}" for symbol, text in names.items()}
    return Inputs(args, small, call), own, said


def shrunk(made: Inputs) -> Inputs:
    """The inputs with smaller lengths where those of the example were kept, since smaller ones did not fit together.

    What kept them, such as channels in eight groups, has a symbol of its own by now. Small calls make a quick verdict.
    """
    small = dict(made.small)
    for symbol, length in made.small.items():
        if length > max(_SMALL):
            free = [tried for tried in _SMALL if tried not in small.values()]
            taken = (tried for tried in free if _is_taken(made.call, {**small, symbol: tried}))
            small[symbol] = next(taken, length)
    return replace(made, small=small)


def _in_units(arg: TensorArg, names: Mapping[str, str]) -> TensorArg:
    inside = renamed(arg, {symbol: f"({text})" for symbol, text in names.items()})
    shape = tuple(names.get(old, new) for old, new in zip(arg.shape, inside.shape, strict=True))
    return replace(inside, shape=shape)


def _unit(where: str, made: Inputs, lengths: Mapping[str, int], symbol: str) -> tuple[int, int, int]:
    """The number of which multiples are taken, how much longer than 1 the least is, and a refused length or 0."""

    # A table needs as many rows as the longest of other lengths has positions.
    larger = {other: _LARGER * n for other, n in made.small.items()}
    fits = elements(larger, made.args) <= _ELEMENTS and _is_taken(made.call, larger)
    beside = [made.small, larger] if fits else [made.small]

    def takes(length: int) -> bool:
        return all(_is_taken(made.call, {**sizes, symbol: length}) for sizes in beside)

    refused = next((times for times in _TIMES if not takes(times)), 0)
    if not refused:
        return 1, 0, 0
    longest = range(1, min(lengths.get(symbol, _LEAST), _LEAST))
    least = next((more for more in longest if all(takes(more + length) for length in _LONGER)), 0)
    # What splits a row in two halves may take an odd length too, by chance, and is not meant for it.
    if least > 1 or (least and _is_no_part(made, symbol)):
        return 1, least, refused
    for unit in _UNITS:
        if not lengths.get(symbol, 0) % unit and all(takes(unit * times) for times in _TIMES):
            return unit, 0, refused
    powers = all(takes(2**power) for power in _POWERS)
    raise UsageError(
        f"{where} took {symbol}={made.small[symbol]}{' and other powers of 2' * powers} and refused "
        f"{symbol}={refused}, but should take every length, every one from a least one on, or every multiple of one up "
        "to 256: make the reference take them, or write a number where a length is fixed, for example x: "
        "Float[Tensor, 'batch 64']"
        f"{', and judge it for each length that matters' * powers}"
    )


def _is_no_part(made: Inputs, symbol: str) -> bool:
    """Whether no result's length is in proportion to it: a window slides along it, or elements of it are picked."""
    usual, longer = made.small[symbol], 2 * made.small[symbol] + 1
    try:
        results = zip(made.call(made.small), made.call({**made.small, symbol: longer}), strict=True)
    except Exception:
        return False
    pairs = [(old, new) for one, other in results for old, new in zip(one.shape, other.shape, strict=False)]
    return all(new == old or new * usual != old * longer for old, new in pairs)


def _is_taken(call: Call, sizes: Sizes) -> bool:
    try:
        call(sizes)
    except Exception:
        return False
    return True
