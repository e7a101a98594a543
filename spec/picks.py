"""Operations that pick elements by their values: which one is picked where several are equal, or nearly so.

`torch.topk` of a row with two equal elements may return either index, and both are right. So where it is asked which
results rounding may change, each element that is compared errs by some accumulator's roundoffs, and by a little even if
it is 0, each by itself. The values that the operation returns are those of the elements it picked, without that error:
a comparison of them with the elements is then exact, as it is in the reference.
"""

from __future__ import annotations

from typing import Any

import torch

_aten = torch.ops.aten

_ONE = frozenset({_aten.argmax.default, _aten.argmin.default})
_WITH_VALUES = frozenset(
    {
        _aten.kthvalue.default,
        _aten.max.dim,
        _aten.min.dim,
        _aten.sort.default,
        _aten.sort.stable,
        _aten.topk.default,
    }
)
#: The operations that pick elements and return where they are.
PICKS = _ONE | _WITH_VALUES

#: What an element that is 0 errs by: less than any number of a dtype but float64 tells from 0, and its square is one.
_LEAST = 2.0**-300


class Picks:
    """How these operations pick where elements err by up to `times` a roundoff."""

    def __init__(self, times: float, seed: int) -> None:
        self._times, self._generator = times, torch.Generator().manual_seed(seed)

    def of(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], unit: float) -> Any:
        """What `func(*args, **kwargs)` returns, which picks elements of its first argument."""
        x = args[0]
        error = torch.rand(x.shape, generator=self._generator, dtype=torch.float64).mul_(2).sub_(1)
        # Integers are moved by less than their distance, so that equal ones alone change places.
        most = x.abs() * (self._times * unit) + _LEAST if x.is_floating_point() else 0.25
        moved = x + error * most
        # An element that is not finite stays as it is; one that is beyond the range does not become so.
        moved = torch.where(moved.isfinite(), moved, x)
        results = func(moved, *args[1:], **kwargs)
        if func in _ONE:
            return results
        dim = _dim(func, args, kwargs)
        places = results[1] if results[1].dim() == x.dim() else results[1].unsqueeze(dim)
        values = x.gather(dim, places)
        return values if results[1].dim() == x.dim() else values.squeeze(dim), results[1]


def _dim(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dim":
            given = args[place] if place < len(args) else kwargs.get("dim", argument.default_value)
            return int(given)
    raise TypeError(f"{func} has no dimension")
