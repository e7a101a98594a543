"""The shapes of an example in symbols: which lengths are one, is found by calling the reference with others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from math import comb, prod
from typing import Any

import torch
from torch import Tensor

from harness.deriving.offsets import lasts, spread
from harness.deriving.parameters import TensorParameter
from harness.deriving.relations import related
from harness.deriving.wording import first_line
from harness.errors import UsageError

#: An axis: the number of a tensor, and of its dimension.
Axis = tuple[int, int]
#: Lengths beyond this are halved before anything is tried.
_SHORT = 16
#: Factors of two lengths, neither of which is a multiple of the other then.
_COPRIME = ((3, 5), (5, 3))
#: Elements of all tensors beyond which lengths that change together grow by steps.
_MANY = 2**21
#: How many sets of axes of one length are tried, of each size.
_MOST_TRIED = 250


@dataclass(frozen=True)
class _Probe:
    """Calls of the reference with tensors of other shapes than the example's."""

    call: Callable[..., Any]
    examples: tuple[Tensor, ...]

    def length(self, axis: Axis) -> int:
        """The length of an axis in the example."""
        return self.examples[axis[0]].shape[axis[1]]

    def elements(self, changed: Mapping[Axis, int]) -> int:
        """How many elements all tensors have then."""
        return sum(map(prod, self._shapes(changed)))

    def accepts(self, changed: Mapping[Axis, int]) -> bool:
        """Whether the reference takes the example with these axes as long as that."""
        try:
            self.call(*self._resized(self._shapes(changed)))
        except Exception:
            return False
        return True

    def _shapes(self, changed: Mapping[Axis, int]) -> list[list[int]]:
        shapes = [list(tensor.shape) for tensor in self.examples]
        for (tensor, dim), length in changed.items():
            shapes[tensor][dim] = length
        return shapes

    def _resized(self, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """The example in other shapes. Offsets end where the tensor of whose parts they are ends."""
        made = [_resized(old, shape) for old, shape in zip(self.examples, shapes, strict=True)]
        for place, last in lasts(self.examples).items():
            lengths = [(len(old), len(new)) for old, new in zip(self.examples, made, strict=True) if old.dim()]
            ends = [new for old, new in lengths if old == last]
            other = next((end for end in ends if end != last), last)
            if other != last or len(made[place]) != len(self.examples[place]):
                made[place] = spread(made[place], len(made[place]), other)
        return made


def _resized(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Its values, repeated or cut to another shape: integers stay in their range."""
    for dim, length in enumerate(shape):
        if length != tensor.shape[dim]:
            places = torch.arange(length) % max(tensor.shape[dim], 1)
            tensor = tensor.index_select(dim, places)
    return tensor


def _shrunk(probe: _Probe) -> _Probe:
    """The same with shorter lengths, equal where they were, if the reference takes them: it is called often."""
    lengths = sorted({length for tensor in probe.examples for length in tensor.shape})
    short: dict[int, int] = {}
    for length in lengths:
        short[length] = length
        while short[length] > _SHORT and short[length] % 2 == 0 and short[length] // 2 not in short.values():
            short[length] //= 2
    least = min((length for length in short.values() if length > 1), default=1)

    ends = lasts(probe.examples)

    def made(place: int, tensor: Tensor) -> Tensor:
        tensor = _resized(tensor, [short[length] for length in tensor.shape])
        if place in ends:
            return spread(tensor, len(tensor), short[ends[place]])
        # Indices are kept below every length.
        return tensor if tensor.is_floating_point() or tensor.dtype == torch.bool else tensor % least

    smaller = _Probe(probe.call, tuple(made(place, tensor) for place, tensor in enumerate(probe.examples)))
    return smaller if smaller.accepts({}) else probe


def symbols_of(
    where: str, parameters: Sequence[TensorParameter], call: Callable[..., Any]
) -> tuple[TensorParameter, ...]:
    """The parameters with shapes in symbols, found from their examples. `call` takes tensors alone.

    Axes of one length are one symbol if the reference refuses to let them differ. Lengths that change only together are
    symbols and expressions of them. An axis that the reference does not let differ from its own length is that number.
    Raises UsageError where the example itself is refused.
    """
    examples = tuple(parameter.example for parameter in parameters)
    if any(example is None for example in examples):
        missing = ", ".join(p.name for p in parameters if p.example is None)
        raise UsageError(
            f"{where}: the shape of {missing} is not known: annotate it, or pass --example for all tensors"
        )
    whole = tuple(example for example in examples if example is not None)
    try:
        call(*whole)
    except Exception as error:
        raise UsageError(f"{where} raised {first_line(error)} for the example, but should take it") from error
    probe = _shrunk(_Probe(call, whole))
    tensors = probe.examples
    axes = [(number, dim) for number, tensor in enumerate(tensors) for dim in range(tensor.dim())]
    names = {(number, dim): str(whole[number].shape[dim]) for number, dim in axes}
    groups: list[list[Axis]] = []
    for length in dict.fromkeys(tensors[number].shape[dim] for number, dim in axes):
        groups += _groups(probe, [axis for axis in axes if tensors[axis[0]].shape[axis[1]] == length], length)
    symbols, factors = _together(where, parameters, probe, whole, groups)
    for group in symbols:
        name = _name(parameters, group[0], set(names.values()))
        names.update(dict.fromkeys(group, name))
    names.update({axis: f"{factor}*{names[of]}" for axis, (factor, of) in factors.items()})
    names.update(_made_of_others(parameters, probe, whole, names))
    return tuple(
        replace(parameter, shape=tuple(names[number, dim] for dim in range(tensors[number].dim())))
        for number, parameter in enumerate(parameters)
    )


def _groups(probe: _Probe, axes: list[Axis], length: int) -> list[list[Axis]]:
    """The axes of one length, parted into those that must be equal. Axes that keep their length are left out."""
    left, found = list(axes), list[list[Axis]]()
    while left and (group := _longer_together(probe, left, length)):
        found.append(group)
        left = [axis for axis in left if axis not in group]
    # A loop over one tensor reads the beginning of another that is longer, and that is no length of its own.
    begun = [group for group in found if not _may_be_shorter(probe, group, length)]
    while left and begun:
        every = [*left, *(axis for group in begun for axis in group)]
        group = _longer_together(probe, every, length, left)
        if group is None:
            break
        begun = [other for other in begun if other[0] not in group]
        found = [*(other for other in found if other[0] not in group), group]
        left = [axis for axis in left if axis not in group]
    return found


def _longer_together(
    probe: _Probe, axes: list[Axis], length: int, needed: Sequence[Axis] | None = None
) -> list[Axis] | None:
    """Axes of that length that may have another one together, one of the `needed` among them; None if there are none.

    None of them may be left out.
    """
    # Some references take even lengths alone, or multiples of the example's.
    tried = (_least(probe, axes, other, needed or axes) for other in (length + 3, 2 * length, 3 * length))
    return next((group for group in tried if group), None)


def _may_be_shorter(probe: _Probe, group: list[Axis], length: int) -> bool:
    return any(probe.accepts(dict.fromkeys(group, n)) for n in (length - 1, length // 2) if 0 < n < length)


def _least(probe: _Probe, axes: list[Axis], length: int, needed: Sequence[Axis]) -> list[Axis] | None:
    """Axes that may have another length together, none of which may be left out; None if there are none."""
    for size in range(1, len(axes)):
        if comb(len(axes), size) > _MOST_TRIED:
            break
        for some in combinations(axes, size):
            if any(axis in needed for axis in some) and probe.accepts(dict.fromkeys(some, length)):
                return list(some)
    if not probe.accepts(dict.fromkeys(axes, length)):
        return None
    group = list(axes)
    for axis in axes[:0:-1]:
        fewer = [other for other in group if other != axis]
        if any(other in needed for other in fewer) and probe.accepts(dict.fromkeys(fewer, length)):
            group = fewer
    return group


def _together(
    where: str,
    parameters: Sequence[TensorParameter],
    probe: _Probe,
    whole: Sequence[Tensor],
    groups: list[list[Axis]],
) -> tuple[list[list[Axis]], dict[Axis, tuple[int, Axis]]]:
    """The groups whose lengths may all change at once, and axes whose length is a multiple of that of another axis.

    A length of 1 that broadcasts may have to stay. A length that another one must divide, such as a width with a scale
    for every eight elements, is as many times as long as in the example. Raises UsageError, with a question, if other
    lengths cannot change together.
    """

    def changed_by(which: _Probe, some: list[list[Axis]], times: Sequence[int]) -> dict[Axis, int]:
        return {axis: which.length(axis) * times[place] for place, group in enumerate(some) for axis in group}

    def fit(some: list[list[Axis]]) -> bool:
        # Multiples of the example's lengths, all different: what has to be even stays so.
        multiples = changed_by(probe, some, range(2, 2 + len(some)))
        if probe.elements(multiples) <= _MANY:
            return probe.accepts(multiples)
        # A convolution of such tensors would fill the memory. What is longer may have to stay so, or what comes first.
        steps = range(2, 2 + 2 * len(some), 2)
        return any(
            probe.accepts({axis: probe.length(axis) + step for group, step in pairs for axis in group})
            for pairs in (list(zip(some, steps, strict=True)), list(zip(some, reversed(steps), strict=True)))
        )

    if fit(groups):
        return groups, {}
    ones = [group for group in groups if probe.length(group[0]) == 1]
    for one in ones:
        others = [group for group in groups if group != one]
        if fit(others):
            return others, {}
    others = [group for group in groups if group not in ones]
    if fit(others):
        return others, {}
    uncut = _Probe(probe.call, tuple(whole))
    for one, other in permutations(others, 2):
        factor, rest = divmod(uncut.length(other[0]), uncut.length(one[0]))
        if (
            rest
            or factor < 2
            or all(uncut.accepts(_times(uncut, one, m) | _times(uncut, other, n)) for m, n in _COPRIME)
        ):
            continue
        left = [group for group in others if group != other]
        changed = changed_by(uncut, left, range(2, 2 + len(left)))
        if uncut.accepts(changed | dict.fromkeys(other, factor * changed[one[0]])):
            return left, dict.fromkeys(other, (factor, one[0]))
    # What takes powers of 2 alone is refused later, as such.
    if probe.accepts(changed_by(probe, others, [2 ** (1 + place) for place in range(len(others))])):
        return others, {}
    for one, other in combinations(others, 2):
        if not fit([one, other]):
            raise UsageError(
                f"{where} takes another length of {_place(parameters, one[0])} and another of "
                f"{_place(parameters, other[0])}, but not both at once. Which lengths belong together? Annotate the "
                f"tensors, for example {parameters[one[0][0]].name}: Float[Tensor, 'batch features'], or pass an "
                "--example in which unrelated lengths differ"
            )
    return others, {}


def _times(probe: _Probe, group: list[Axis], factor: int) -> dict[Axis, int]:
    return {axis: factor * probe.length(axis) for axis in group}


def _made_of_others(
    parameters: Sequence[TensorParameter], probe: _Probe, whole: Sequence[Tensor], names: Mapping[Axis, str]
) -> dict[Axis, str]:
    """Expressions of axes that keep their length while all others do: those that are made of each other."""
    left: dict[int, list[Axis]] = {}
    for axis, name in names.items():
        if not name.isidentifier():
            left.setdefault(probe.length(axis), []).append(axis)
    taken = set(names.values())

    def accepts(lengths: Mapping[int, int]) -> bool:
        return probe.accepts({axis: new for old, new in lengths.items() for axis in left[old]})

    found = related(
        {length: _name(parameters, axes[0], taken) for length, axes in left.items()},
        {length: whole[axes[0][0]].shape[axes[0][1]] for length, axes in left.items()},
        accepts,
    )
    related_axes = {axis: text for length, text in found.items() for axis in left[length]}
    return related_axes | _as_long(probe, names, related_axes)


def _as_long(probe: _Probe, names: Mapping[Axis, str], found: Mapping[Axis, str]) -> dict[Axis, str]:
    """Axes that are as long as one of which others are made, and that may differ from it: a state and its cell.

    They are one length, as in the example, unless a tensor would have it twice: the rows of a batch are another.
    """
    lengths = {text: probe.length(axis) for axis, text in found.items() if text.isidentifier()}
    groups: dict[str, list[Axis]] = {}
    for axis, name in names.items():
        if axis not in found and name.isidentifier():
            groups.setdefault(name, []).append(axis)
    merged: dict[Axis, str] = {}
    for symbol, length in lengths.items():
        for group in groups.values():
            taken = {axis[0] for axis, text in {**found, **merged}.items() if text == symbol}
            if probe.length(group[0]) == length and not taken & {axis[0] for axis in group}:
                merged.update(dict.fromkeys(group, symbol))
    return merged


def _place(parameters: Sequence[TensorParameter], axis: Axis) -> str:
    return f"dimension {axis[1]} of {parameters[axis[0]].name}"


def _name(parameters: Sequence[TensorParameter], axis: Axis, taken: set[str]) -> str:
    name = f"{parameters[axis[0]].name}_{axis[1]}"
    while name in taken:
        name += "_"
    return name
