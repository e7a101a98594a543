"""Lengths of which a reference takes multiples alone, such as even ones: the symbol counts the multiples.

Properties choose sizes of their own. So a symbol must have a meaning at every size: `x_1` of a reference that splits x
in two becomes `2*x_1`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor

from harness.deriving.invariants import renamed
from harness.deriving.sizes import Call, caller
from harness.deriving.values import Inputs, symbols_in
from harness.errors import UsageError
from spec.contract import Sizes, TensorArg

#: Multiples that are tried, least first, and how many of each the reference must take.
_UNITS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96, 128, 256)
_TIMES = (1, 2, 3, 5, 7)


def in_units(
    where: str, made: Inputs, lengths: Mapping[str, int], forward: Callable[..., tuple[Tensor, ...]]
) -> tuple[Inputs, dict[str, int], dict[str, str]]:
    """The inputs, the example's lengths and new names of symbols, so that every length of a symbol is taken.

    Raises UsageError for a length of which the reference takes some, but not the multiples of any number.
    """
    units = {symbol: _unit(where, made, lengths, symbol) for symbol in symbols_in(made.args)}
    names = {symbol: f"{unit}*{symbol}" for symbol, unit in units.items() if unit > 1}
    if not names:
        return made, dict(lengths), {}
    args = tuple(_in_units(arg, names) for arg in made.args)
    small = dict(made.small)
    for symbol in names:
        others = {length for other, length in small.items() if other != symbol}
        times = [small[symbol] // units[symbol], *_TIMES[1:]]
        small[symbol] = next((one for one in times if one > 1 and one * units[symbol] not in others), 1)
    call = caller(args, forward)
    if not _is_taken(call, small):
        small = {symbol: length // units[symbol] for symbol, length in made.small.items()}
    return Inputs(args, small, call), {symbol: n // units.get(symbol, 1) for symbol, n in lengths.items()}, names


def _in_units(arg: TensorArg, names: Mapping[str, str]) -> TensorArg:
    inside = renamed(arg, {symbol: f"({text})" for symbol, text in names.items()})
    shape = tuple(names.get(old, new) for old, new in zip(arg.shape, inside.shape, strict=True))
    return replace(inside, shape=shape)


def _unit(where: str, made: Inputs, lengths: Mapping[str, int], symbol: str) -> int:
    for unit in _UNITS:
        if lengths.get(symbol, 0) % unit:
            continue
        if all(_is_taken(made.call, {**made.small, symbol: unit * times}) for times in _TIMES):
            return unit
    refused = next(times for times in _TIMES if not _is_taken(made.call, {**made.small, symbol: times}))
    raise UsageError(
        f"{where} took {symbol}={made.small[symbol]} and refused {symbol}={refused}, but should take every length, or "
        "every multiple of one up to 256: make the reference take them, or write a number where a length is fixed, for "
        "example x: Float[Tensor, 'batch 64']"
    )


def _is_taken(call: Call, sizes: Sizes) -> bool:
    try:
        call(sizes)
    except Exception:
        return False
    return True
