"""Whole numbers that an operation has rounded to: sums and products of them are exact.

Who rounds to whole numbers adds and multiplies them without an error, in any order and in any dtype that holds them. An
error of the model would make another number of 16 h + l, two numbers of 4 bits in one, in each run.

Whole numbers are here only what `round`, `floor`, `ceil`, `trunc` and `sign` return, constants, and what is made of
these. An input that holds whole numbers may be rounded in another computation of the same result. So may integers that
were inputs: of q s - z s, each product is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from spec.largest_errors import is_real
from spec.operations import CREATIONS, MOVES

_aten = torch.ops.aten

#: Operations whose results are whole numbers, whatever they are given.
ROUNDED = frozenset(
    {_aten.ceil.default, _aten.floor.default, _aten.round.default, _aten.sign.default, _aten.trunc.default}
)
#: Operations whose results are whole numbers if all that they are given is.
_CLOSED = frozenset(
    {
        _aten.add.Tensor,
        _aten.bmm.default,
        _aten.cumsum.default,
        _aten.dot.default,
        _aten.fmod.Scalar,
        _aten.fmod.Tensor,
        _aten.mm.default,
        _aten.mul.Tensor,
        _aten.mv.default,
        _aten.remainder.Scalar,
        _aten.remainder.Tensor,
        _aten.rsub.Scalar,
        _aten.sub.Tensor,
        _aten.sum.default,
        _aten.sum.dim_IntList,
    }
)
#: Those of them that add two terms, the second one times alpha; and those that add up terms of products or sums.
_ADD_TWO = frozenset({_aten.add.Tensor, _aten.rsub.Scalar, _aten.sub.Tensor})
_ADD_UP = frozenset(
    {
        _aten.bmm.default,
        _aten.cumsum.default,
        _aten.dot.default,
        _aten.mm.default,
        _aten.mv.default,
        _aten.sum.default,
        _aten.sum.dim_IntList,
    }
)
#: Operations that scale: by a power of 2, they are exact.
_SCALES = frozenset({_aten.div.Tensor, _aten.mul.Tensor})
#: What such an operation returns may hold anything.
_UNSET = frozenset(
    {
        _aten.empty.memory_format,
        _aten.empty_like.default,
        _aten.empty_strided.default,
        _aten.new_empty.default,
        _aten.new_empty_strided.default,
    }
)
#: A constant, such as `torch.tensor([1.0, 16.0])`.
_CONSTANT = _aten.lift_fresh.default
#: A constant to the power of integers.
_POWER = _aten.pow.Scalar
_TO_COPY = _aten._to_copy.default

Arguments = tuple[Any, ...]


class WholeNumbers:
    """Which tensors of one evaluation hold whole numbers: constants, and what is made of the first that is rounded."""

    def __init__(self) -> None:
        #: By the address of its memory, with whether it is made of what was rounded. A kept tensor keeps the address.
        self._kept: dict[int, tuple[Tensor, bool]] = {}
        self._any = False

    def moved(self, func: Any, args: Arguments, kwargs: dict[str, Any], result: Any) -> None:
        """Learn of an operation without rounding."""
        if func in ROUNDED:
            self._any = True
            self._keep(result)
        elif func in CREATIONS or func is _CONSTANT:
            if func not in _UNSET and is_real(result) and _are_all_whole(result):
                self._keep(result, rounded=False)
        elif self._any and (func in MOVES or func is _TO_COPY) and self._some_rounded(args):
            if not self._are_whole((*args, *kwargs.values())):
                return
            for part in result if isinstance(result, tuple | list) else (result,):
                self._keep(part)

    def exact(self, func: Any, args: Arguments, kwargs: dict[str, Any], result: Tensor, unit: float) -> bool:
        """Whether an operation that rounds has nothing to round, in a dtype of that roundoff. Learns of its result."""
        if func is _POWER and self._are_whole(args) and _are_all_whole(result, unit):
            self._keep(result, rounded=False)
            return True
        if not (self._any and result.numel()):
            return False
        if func in _CLOSED and self._some_rounded(args) and self._are_whole((*args, *kwargs.values())):
            stays_whole = True
        elif func in _SCALES and self._some_rounded(args[:1]) and _is_power_of_2(args[1]):
            stays_whole = False
        else:
            return False
        if not float(_sizes(func, args, kwargs, result).max()) <= 1 / unit:
            return False
        if stays_whole:
            self._keep(result)
        return True

    def written(self, to: Tensor, values: Any) -> None:
        """Learn that these values were written into a tensor."""
        whole, address = self._holds(values), _address(to)
        before = self._kept.pop(address, None) if self._kept else None
        if before is not None and whole:
            self._kept[address] = before[0], before[1] or self._kept.get(_address(values), before)[1]

    def _keep(self, tensor: Any, rounded: bool = True) -> None:
        if is_real(tensor) and tensor.numel():
            self._kept[_address(tensor)] = tensor, rounded

    def _holds(self, value: Any) -> bool:
        return is_real(value) and _address(value) in self._kept

    def _some_rounded(self, args: Arguments) -> bool:
        """Whether any of these is made of what was rounded. Of constants alone a contract makes errors: `ones * 1`."""
        return any(self._holds(part) and self._kept[_address(part)][1] for part in _parts(args))

    def _are_whole(self, args: Arguments) -> bool:
        """Whether all arguments are whole numbers: such tensors, integers, or numbers without a fraction."""
        return all(self._holds(part) if is_real(part) else _is_whole(part) for part in _parts(args))


def _parts(args: Arguments) -> Iterator[Any]:
    for value in args:
        if isinstance(value, tuple | list):
            yield from value
        else:
            yield value


def _sizes(func: Any, args: Arguments, kwargs: dict[str, Any], result: Tensor) -> Tensor:
    """The largest number that is met on the way to each element of the result, in any order."""
    if func in _ADD_TWO:
        sizes: Tensor = abs(args[0]) + abs(kwargs.get("alpha", 1) * args[1])
    elif func in _ADD_UP:
        sizes = func(*(x.abs() if is_real(x) else x for x in args), **kwargs)
    else:
        sizes = result.abs()
    return sizes


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _is_whole(argument: Any) -> bool:
    """Whether no part of this argument is a number with a fraction. Tensors are looked at elsewhere."""
    return not isinstance(argument, float) or argument.is_integer()


def _are_all_whole(tensor: Tensor, unit: float = 0.0) -> bool:
    """Whether these are whole numbers that a dtype of that roundoff holds."""
    return bool((tensor == tensor.round()).all()) and (unit == 0 or bool((tensor.abs() <= 1 / unit).all()))


def _is_power_of_2(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5
