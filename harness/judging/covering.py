"""Covering arrays: few rows in which every two choices that can occur together do.

A row has one choice for each axis of a model. It is built greedily: from two choices that have not met, by adding the
choice that brings most new pairs, of whichever axis. There are some 75 rows for 17 axes of up to 8 choices; published
tools for arrays with constraints need as many or a third more, and take longer.

Source: D. Cohen, S. Dalal, M. Fredman, G. Patton, "The AETG system" (1997), for rows one by one, each by the most new
pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import Any

#: An axis, and a value on it.
Choice = tuple[str, Any]
Row = dict[str, Any]
#: A choice is a number while rows are made: sets of small integers take a tenth of the time of sets of choices.
_Numbers = Mapping[Choice, int]


@dataclass(frozen=True)
class Model:
    """The values of each axis, and whether some choices can occur in a row, whatever the others are.

    `possible` must hold of a whole row if it holds of those of its parts that `_Builder` adds one by one: for choices
    that are possible together, each further axis has a value that is possible with them. What is chosen on an axis
    that is `free` must not matter to it.
    """

    axes: Mapping[str, Sequence[Any]]
    possible: Callable[[Mapping[str, Any]], bool]
    free: Collection[str] = ()


def rows_of(models: Sequence[Model], first: Sequence[Row] = ()) -> list[Row]:
    """The rows `first`, and further ones, with every two choices that can occur together in one. The same each time."""
    numbers = _numbered(models, first)
    of_models = [[_pair(*found) for found in _sets(model, numbers, 2)] for model in models]
    missing = _Missing(len(numbers), chain.from_iterable(of_models))
    builders = [_Builder(model, numbers, missing, pairs) for model, pairs in zip(models, of_models, strict=True)]
    rows = list(first)
    for row in rows:
        missing.remove(_pairs(row, numbers))
    while missing.pairs:
        found = [row for builder in builders if (row := builder.row())]
        rows.append(max(found, key=lambda row: len(missing.pairs.keys() & _pairs(row, numbers))))
        missing.remove(_pairs(rows[-1], numbers))
    return rows


def coverage(models: Sequence[Model], rows: Sequence[Row], strength: int) -> tuple[int, int]:
    """How many sets of so many choices can occur, and how many of them do. The order of axes is the same in all."""
    numbers = _numbered(models, rows)
    can, do = set[tuple[int, ...]](), set[tuple[int, ...]]()
    for model in models:
        can.update(_sets(model, numbers, strength))
    for row in rows:
        do.update(combinations([numbers[choice] for choice in row.items()], strength))
    return len(can), len(can & do)


class _Missing:
    """The pairs of choices that no row has yet, in the order in which they were found."""

    def __init__(self, count: int, pairs: Iterable[tuple[int, int]]) -> None:
        self.pairs = dict.fromkeys(pairs)
        #: By its number, the choices that each choice has not met.
        self.of: list[set[int]] = [set() for _ in range(count)]
        for one, other in self.pairs:
            self.of[one].add(other)
            self.of[other].add(one)

    def remove(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Leave out those of them that are missing."""
        for pair in self.pairs.keys() & pairs:
            del self.pairs[pair]
            one, other = pair
            self.of[one].remove(other)
            self.of[other].remove(one)


class _Builder:
    """Makes rows of a model, which can have the pairs `possible`."""

    def __init__(self, model: Model, numbers: _Numbers, missing: _Missing, possible: Iterable[tuple[int, int]]) -> None:
        self._model, self._missing, self._possible = model, missing, frozenset(possible)
        self._choices = {numbers[axis, value]: (axis, value) for axis in model.axes for value in model.axes[axis]}
        self._of_axis = {axis: [numbers[axis, value] for value in values] for axis, values in model.axes.items()}

    def row(self) -> Row:
        """A row with the missing pair whose choices miss most others; empty if no pair is of this model.

        Another model may have the same choices, and allow more of them.
        """
        of = self._missing.of
        own = [pair for pair in self._missing.pairs if pair in self._possible]
        if not own:
            return {}
        row: Row = {}
        new = dict.fromkeys(self._choices, 0)
        for number in max(own, key=lambda pair: len(of[pair[0]]) + len(of[pair[1]])):
            self._add(number, row, new)
        while new:
            self._add(self._next(row, new), row, new)
        return {axis: row[axis] for axis in self._model.axes}

    def _add(self, number: int, row: Row, new: dict[int, int]) -> None:
        """Add a choice to the row; `new`: those of other axes, and how many missing pairs each would bring."""
        axis, value = self._choices[number]
        row[axis] = value
        for other in self._of_axis[axis]:
            del new[other]
        for other in self._missing.of[number] & new.keys():
            new[other] += 1

    def _next(self, row: Row, new: Mapping[int, int]) -> int:
        """The choice with most missing pairs in the row, and among equals with most of all."""
        of = self._missing.of
        for number in sorted(new, key=lambda number: (new[number], len(of[number])), reverse=True):
            axis, value = self._choices[number]
            if axis in self._model.free or self._model.possible({**row, axis: value}):
                return number
        raise ValueError(f"no axis can be added to {row}, so its choices should not be possible together")


def _numbered(models: Sequence[Model], rows: Sequence[Row]) -> _Numbers:
    of_models = ((axis, value) for model in models for axis, values in model.axes.items() for value in values)
    of_rows = (choice for row in rows for choice in row.items())
    return {choice: number for number, choice in enumerate(dict.fromkeys(chain(of_models, of_rows)))}


def _sets(model: Model, numbers: _Numbers, strength: int) -> Iterator[tuple[int, ...]]:
    """All sets of so many choices that can occur together, each on axes of its own."""
    of_axes = {axis: [numbers[axis, value] for value in values] for axis, values in model.axes.items()}
    known: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    for axes in combinations(model.axes, strength):
        bound = tuple(axis for axis in axes if axis not in model.free)
        if bound not in known:
            choices = product(*([(axis, value) for value in model.axes[axis]] for axis in bound))
            known[bound] = {
                tuple(numbers[choice] for choice in some) for some in choices if not model.possible(dict(some))
            }
        found = product(*(of_axes[axis] for axis in axes))
        if not known[bound]:
            yield from found
            continue
        places = [axes.index(axis) for axis in bound]
        yield from (each for each in found if tuple(each[place] for place in places) not in known[bound])


def _pairs(row: Row, numbers: _Numbers) -> set[tuple[int, int]]:
    return {_pair(*found) for found in combinations([numbers[choice] for choice in row.items()], 2)}


def _pair(one: int, other: int) -> tuple[int, int]:
    """Both numbers, the smaller one first."""
    return (one, other) if one < other else (other, one)
