"""Calls that are steered to what no call has reached, as fuzzers do it.

First every size from 1 to 64 of every symbol occurs once: a branch on a remainder or on a bound below that is taken.
Then calls that reached something new are changed in one to three of their choices: sizes, values, layouts, cotangents,
which gradients are wanted. A change that reaches something new is changed further.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from random import Random

from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario, kinds_of, layouts_of
from spec.contract import Operator

#: Sizes that all occur. A prime or a power of two below is a remainder or a bound of most blocks.
SWEPT = 64
#: Sizes over which the reference loops: these many.
STEPS = 8
#: Most elements of all inputs and outputs of a call: a call takes a millisecond, its oracle some ten.
VOLUME = 2**15
#: Steps between a symbol's sizes of two calls, for each symbol another one. All are odd, so that every size occurs.
_STRIDES = (1, 21, 37, 45, 11, 53, 27, 5)
#: A size is increased to this at most.
_LARGEST = 4100


def swept(operator: Operator) -> Iterator[Scenario]:
    """Each size of each symbol up to `SWEPT` in one call; where that is too large, with the other sizes small."""
    for number in range(SWEPT):
        sizes = {}
        for symbol, stride in zip(operator.symbols(), _STRIDES * len(operator.symbols()), strict=False):
            size = number * stride % SWEPT + 1
            sizes[symbol] = (size - 1) % STEPS + 1 if symbol in operator.sequential else size
        if volume(operator, sizes) <= VOLUME:
            yield _swept(sizes, number)
            continue
        for symbol in sizes:
            yield _swept({name: size if name == symbol else size % 7 + 1 for name, size in sizes.items()}, number)


def _swept(sizes: dict[str, int], number: int) -> Scenario:
    return Scenario(tuple(sizes.items()), name=f"swept-{number}", seed=number)


def volume(operator: Operator, sizes: dict[str, int]) -> int:
    """The elements of all inputs and outputs."""
    return sum(prod(arg.shape_for(sizes)) for arg in (*operator.inputs, *operator.outputs))


class Mutations:
    """Changed calls, from a seed."""

    def __init__(self, operator: Operator, seed: int) -> None:
        self._operator, self._random, self._made = operator, Random(seed), 0

    def of(self, corpus: Sequence[Scenario]) -> Scenario:
        """A call of the corpus, the latest as often as all others together, with one to three other choices."""
        draw = self._random
        parent = corpus[-1] if draw.random() < 0.5 else draw.choice(corpus)
        changes = (self._size, self._size, self._size, self._values, self._layout, self._cotangent, self._wanted)
        for change in draw.choices(changes, k=draw.randint(1, 3)):
            parent = change(parent)
        self._made += 1
        return replace(parent, name=f"steered-{self._made}")

    def _size(self, parent: Scenario) -> Scenario:
        draw, sizes = self._random, dict(parent.sizes)
        symbol = draw.choice(list(sizes))
        if symbol in self._operator.sequential:
            sizes[symbol] = draw.randint(1, STEPS)
        else:
            size = sizes[symbol]
            near = (size - 1, size + 1, 2 * size, 2 * size + 1, draw.choice(list(sizes.values())))
            sizes[symbol] = min(max(draw.choice((draw.randint(1, SWEPT), *near)), 1), _LARGEST)
        return parent if volume(self._operator, sizes) > VOLUME else replace(parent, sizes=tuple(sizes.items()))

    def _values(self, parent: Scenario) -> Scenario:
        families = ("normal", *(family.name for family in self._operator.families))
        return replace(parent, values=self._random.choice(families), seed=self._random.randrange(2**31))

    def _layout(self, parent: Scenario) -> Scenario:
        possible = {arg.name: layouts_of(arg) for arg in self._operator.inputs}
        found = self._other(parent.layouts, list(possible), LAYOUTS)
        return replace(parent, layouts=tuple((name, layout) for name, layout in found if layout in possible[name]))

    def _cotangent(self, parent: Scenario) -> Scenario:
        names = [arg.name for arg in self._operator.real_outputs]
        if not names:
            return parent
        possible = set().union(*(kinds_of(arg) for arg in self._operator.real_outputs))
        kinds = [kind for kind in COTANGENTS if kind in possible and (kind != "missing" or len(names) > 1)]
        found = self._other(parent.cotangents, names, kinds)
        nothing = len(found) == len(names) and all(kind == "missing" for _, kind in found)
        return parent if nothing else replace(parent, cotangents=found)

    def _other(
        self, pairs: tuple[tuple[str, str], ...], names: Sequence[str], kinds: Sequence[str]
    ) -> tuple[tuple[str, str], ...]:
        """The pairs with one of the names, or all of them, of another kind; the first kind is left out."""
        kind = self._random.choice(kinds)
        chosen = names if self._random.random() < 0.25 else [self._random.choice(names)]
        found = {**dict(pairs), **dict.fromkeys(chosen, kind)}
        return tuple((name, found[name]) for name in names if found.get(name, kinds[0]) != kinds[0])

    def _wanted(self, parent: Scenario) -> Scenario:
        differentiable = [arg.name for arg in self._operator.inputs if arg.differentiable]
        wanted = tuple(name for name in differentiable if self._random.random() < 0.7)
        return replace(parent, wanted=None if len(wanted) == len(differentiable) else wanted)
