"""Calls in which every two choices occur together: a covering array over the ways to make a call.

The axes are the size of each symbol, the layout of each input, the kind of each cotangent, the family of values,
whether each input requires grad, and the mode of a call without grad. Many faults need two of them at once: more rows
than a block and a transposed tensor, an expanded cotangent and one gradient alone. All combinations are too many; all
pairs are some 150 calls.

Source of the method: D. Kuhn, R. Kacker, Y. Lei, "Practical combinatorial testing", NIST SP 800-142 (2010). allpairspy
computes the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations, product
from math import prod
from typing import Any

import torch
from allpairspy import AllPairs

from harness.judging.oracle import ByIdentity
from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario
from spec.contract import Operator

#: Sizes of a symbol: one, no multiple of a vector, a vector, and a tail beyond a vector of 32.
SIZES = (1, 3, 8, 33)
#: One more size, the first that the volume allows; the very first is for rows alone. They are prime, so that they are
#: no multiple of any block.
LARGE = (4099, 1031, 257, 67)
#: Further calls have two sizes in these ratios: the second is `_BASE`, and the others are `_OTHER`.
RATIOS = (1, 2, 3, 4)
_BASE, _OTHER = 5, 7
#: Sizes over which the reference loops.
STEPS = (1, 2, 5)
#: Layouts and kinds of cotangent of which all pairs occur; `layouts` asks the others alone.
OF_INPUTS = tuple(layout for layout in LAYOUTS if layout != "offset")
OF_COTANGENTS = tuple(kind for kind in COTANGENTS if kind not in ("transposed", "offset"))
#: Most elements of all inputs and outputs of a call, and half of the largest product of all its sizes, which bounds
#: what lies in between. So an oracle takes some hundredths of a second.
VOLUME = 2**15

NO_GRAD, INFERENCE = WITHOUT_GRAD = ("no_grad", "inference_mode")

#: An axis and a value on it.
Choice = tuple[str, Any]
#: Two choices, in the order of their axes.
Pair = tuple[Choice, Choice]


@dataclass(frozen=True)
class Combination:
    """One call, and the mode in which it is made once more without grad."""

    scenario: Scenario
    without_grad: str


@dataclass(frozen=True)
class Combinations:
    """A covering array: its calls, and how many pairs of choices can occur and do occur."""

    calls: tuple[Combination, ...]
    feasible: int
    covered: int


def combinations_of(operator: Operator) -> Combinations:
    """The covering array of an operator: the same each time."""
    return _computed(ByIdentity(operator))


@lru_cache(maxsize=64)
def _computed(key: ByIdentity) -> Combinations:
    operator = key.operator
    axes = axes_of(operator)
    names = tuple(axes)

    def possible(chosen: Sequence[Any]) -> bool:
        return _possible(operator, dict(zip(names, chosen, strict=False)))

    rows = [dict(zip(names, row, strict=True)) for row in AllPairs(list(axes.values()), filter_func=possible)]
    feasible = [
        pair
        for one, other in combinations(axes, 2)
        for pair in product(((one, value) for value in axes[one]), ((other, value) for value in axes[other]))
        if _possible(operator, dict(pair))
    ]
    # allpairspy gives up a pair for which its order of choices finds no call within the volume.
    missing = dict.fromkeys(feasible)
    _strike(missing, rows)
    while missing:
        rows.append(_row_with(operator, axes, missing))
        _strike(missing, rows[-1:])
    calls = [_combination(operator, row, number) for number, row in enumerate(rows, start=1)]
    return Combinations((*calls, *_ratios(operator)), len(feasible), len(feasible) - len(missing))


def _ratios(operator: Operator) -> Iterator[Combination]:
    """Two sizes that are equal or multiples, all inputs contiguous and all transposed: a layout must not be guessed."""
    is_another_form = bool(operator.form) and not operator.forms
    symbols = [] if is_another_form else [name for name in operator.symbols() if name not in operator.sequential]
    for one, other in permutations(symbols, 2):
        for ratio in RATIOS if one < other else RATIOS[1:]:
            sizes = dict.fromkeys(operator.symbols(), _OTHER) | {other: _BASE, one: ratio * _BASE}
            sizes |= dict.fromkeys(operator.sequential, STEPS[-1])
            for layout, mode in zip(("contiguous", "transposed"), WITHOUT_GRAD, strict=True):
                flat = layout == LAYOUTS[0]
                layouts = () if flat else tuple((arg.name, layout) for arg in operator.inputs if len(arg.shape) > 1)
                scenario = Scenario(
                    tuple(sizes.items()), name=f"ratio-{one}-{ratio}-{other}", seed=ratio, layouts=layouts
                )
                yield Combination(scenario, mode)


def _strike(missing: dict[Pair, None], rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        for pair in combinations(row.items(), 2):
            missing.pop(pair, None)


def _row_with(operator: Operator, axes: Mapping[str, tuple[Any, ...]], missing: Mapping[Pair, None]) -> dict[str, Any]:
    """A call with the first of the missing pairs, and with as many of the others as one choice after another finds."""
    row = dict(next(iter(missing)))
    for axis, values in axes.items():
        if axis in row:
            continue
        possible = [value for value in values if _possible(operator, {**row, axis: value})]
        row[axis] = max(possible, key=lambda value: _gained(row, (axis, value), missing))
    return {axis: row[axis] for axis in axes}


def _gained(row: Mapping[str, Any], choice: Choice, missing: Mapping[Pair, None]) -> int:
    return sum((other, choice) in missing or (choice, other) in missing for other in row.items())


def axes_of(operator: Operator) -> dict[str, tuple[Any, ...]]:
    """The values of each axis, by its name. An axis of one value is left out of no pair, so it stays."""
    axes: dict[str, tuple[Any, ...]] = {}
    for symbol in operator.symbols():
        axes[f"size of {symbol}"] = STEPS if symbol in operator.sequential else (*SIZES, _large(operator, symbol))
    for arg in operator.inputs:
        dims = len(arg.shape)
        axes[f"layout of {arg.name}"] = tuple(
            layout for layout in OF_INPUTS if layout == LAYOUTS[0] or dims >= (2 if layout == "transposed" else 1)
        )
    for arg in operator.outputs:
        kinds = (kind for kind in OF_COTANGENTS if kind != "missing" or len(operator.outputs) > 1)
        axes[f"cotangent of {arg.name}"] = tuple(kinds)
    axes["values"] = ("normal", *(family.name for family in operator.families))
    for arg in operator.inputs:
        if arg.differentiable:
            axes[f"gradient of {arg.name}"] = (True, False)
    axes["without grad"] = WITHOUT_GRAD
    return axes


def _large(operator: Operator, symbol: str) -> int:
    sizes = LARGE if symbol == "batch" else LARGE[1:]
    return next(size for size in sizes if _volume(operator, {symbol: size}) <= VOLUME)


def _volume(operator: Operator, sizes: Mapping[str, int]) -> int:
    """The elements of a call as `VOLUME` limits them; a size that is not chosen yet is 1."""
    every = {symbol: sizes.get(symbol, 1) for symbol in operator.symbols()}
    elements = sum(prod(arg.shape_for(every)) for arg in (*operator.inputs, *operator.outputs))
    return max(elements, prod(every.values()) // 2)


def _possible(operator: Operator, chosen: Mapping[str, Any]) -> bool:
    """Whether a call with these choices, and any others, can be made and is worth it."""
    sizes = {axis.removeprefix("size of "): size for axis, size in chosen.items() if axis.startswith("size of ")}
    kinds = [kind for axis, kind in chosen.items() if axis.startswith("cotangent of ")]
    nothing = len(kinds) == len(operator.outputs) and all(kind == "missing" for kind in kinds)
    return _volume(operator, sizes) <= VOLUME and not nothing


def _combination(operator: Operator, row: Mapping[str, Any], number: int) -> Combination:
    differentiable = [arg.name for arg in operator.inputs if arg.differentiable]
    wanted = tuple(name for name in differentiable if row[f"gradient of {name}"])
    layouts = ((arg.name, row[f"layout of {arg.name}"]) for arg in operator.inputs)
    kinds = ((arg.name, row[f"cotangent of {arg.name}"]) for arg in operator.outputs)
    scenario = Scenario(
        sizes=tuple((symbol, row[f"size of {symbol}"]) for symbol in operator.symbols()),
        name=f"pairs-{number}",
        seed=number,
        values=row["values"],
        layouts=tuple((name, layout) for name, layout in layouts if layout != LAYOUTS[0]),
        cotangents=tuple((name, kind) for name, kind in kinds if kind != COTANGENTS[0]),
        wanted=None if len(wanted) == len(differentiable) else wanted,
    )
    return Combination(scenario, row["without grad"])


def without_grad(mode: str) -> AbstractContextManager[None]:
    """The mode of that name: `no_grad` or `inference_mode`."""
    return torch.inference_mode() if mode == INFERENCE else torch.no_grad()
