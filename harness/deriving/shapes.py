"""The shapes of an example in symbols: which lengths are one, is found by calling the reference with others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from harness.deriving.parameters import TensorParameter
from harness.errors import UsageError

#: An axis: the number of a tensor, and of its dimension.
Axis = tuple[int, int]


@dataclass(frozen=True)
class _Probe:
    """Calls of the reference with tensors of other shapes than the example's."""

    call: Callable[..., Any]
    examples: tuple[Tensor, ...]

    def accepts(self, changed: dict[Axis, int]) -> bool:
        """Whether the reference takes the example with these axes as long as that."""
        shapes = [list(tensor.shape) for tensor in self.examples]
        for (tensor, dim), length in changed.items():
            shapes[tensor][dim] = length
        try:
            self.call(*(_resized(old, shape) for old, shape in zip(self.examples, shapes, strict=True)))
        except Exception:
            return False
        return True


def _resized(tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Its values, repeated or cut to another shape: integers stay in their range."""
    for dim, length in enumerate(shape):
        if length != tensor.shape[dim]:
            places = torch.arange(length) % max(tensor.shape[dim], 1)
            tensor = tensor.index_select(dim, places)
    return tensor


def symbols_of(
    where: str, parameters: Sequence[TensorParameter], call: Callable[..., Any]
) -> tuple[TensorParameter, ...]:
    """The parameters with shapes in symbols, found from their examples. `call` takes tensors alone.

    Axes of one length are one symbol if the reference refuses to let them differ. An axis that it does not let differ
    from its own length is that number. Raises UsageError where the example itself is refused.
    """
    examples = tuple(parameter.example for parameter in parameters)
    if any(example is None for example in examples):
        missing = ", ".join(p.name for p in parameters if p.example is None)
        raise UsageError(
            f"{where}: the shape of {missing} is not known: annotate it, or pass --example for all tensors"
        )
    tensors = tuple(example.detach() for example in examples if example is not None)
    try:
        call(*tensors)
    except Exception as error:
        raise UsageError(
            f"{where} raised {type(error).__name__}: {error} for the example, but should take it"
        ) from error
    probe = _Probe(call, tensors)
    names: dict[Axis, str] = {}
    lengths: dict[int, list[Axis]] = {}
    for number, tensor in enumerate(tensors):
        for dim, length in enumerate(tensor.shape):
            lengths.setdefault(length, []).append((number, dim))
    for length, axes in lengths.items():
        for group in _groups(probe, axes, length):
            name = _name(parameters, group, probe, length, set(names.values()))
            names.update(dict.fromkeys(group, name))
    return tuple(
        replace(parameter, shape=tuple(names[number, dim] for dim in range(tensors[number].dim())))
        for number, parameter in enumerate(parameters)
    )


def _groups(probe: _Probe, axes: list[Axis], length: int) -> list[list[Axis]]:
    """The axes of one length, parted into those that must be equal."""
    other = length + 3
    left, found = list(axes), []
    for size in range(1, len(axes)):
        for group in combinations(axes, size):
            if set(group) <= set(left) and probe.accepts(dict.fromkeys(group, other)):
                found.append(list(group))
                left = [axis for axis in left if axis not in group]
    return [*found, left] if left else found


def _name(parameters: Sequence[TensorParameter], group: list[Axis], probe: _Probe, length: int, taken: set[str]) -> str:
    """A name for these axes; the length itself where the reference takes no other, and for 1, which broadcasts."""
    if length == 1 or not probe.accepts(dict.fromkeys(group, length + 3)):
        return str(length)
    number, dim = group[0]
    name = f"{parameters[number].name}_{dim}"
    while name in taken:
        name += "_"
    return name
