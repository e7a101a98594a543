"""By how much an operation errs at most: the factors of xi in the formulas of `spec.rounding`, and what overflows."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spec.amplitudes import Amplitude
from spec.blocks import region
from spec.kinds import kind
from spec.operations import MEANS, OF_TWO, OVER_ALL, PRODUCTS, SCATTERS, SUMS, window
from spec.parts import parts_of
from spec.repeats import repeats
from spec.roundoff import UNIT_ROUNDOFF, underflow

#: Largest partial sum that products computed in parts have, in units of sqrt(A^2 @ B^2).
PARTS = 4

_aten = torch.ops.aten
_ADD, _EXP, _SIGMOID = _aten.add.Tensor, _aten.exp.default, _aten.sigmoid.default
_ERF = _aten.erf.default
#: Roundoffs by which erf errs more than by the rounding of its result. PyTorch's vectorised F.gelu has an erf of its
#: own: with AVX512 it errs by 12 roundoffs at most, and by 2.8 in the root of the mean square for x from -4 to -2.
_OF_ERF = 3
#: Products that are added to their first argument.
_TO_ANOTHER = frozenset({_aten.addmm.default, _aten.baddbmm.default})
#: Up to this many elements, numpy is faster than torch.
_FEW = 2**12


class LargestErrors:
    """The largest errors of the operations of one evaluation in a dtype, one after another."""

    def __init__(self, dtype: torch.dtype) -> None:
        accumulator = dtype if UNIT_ROUNDOFF[dtype] <= UNIT_ROUNDOFF[torch.float32] else torch.float32
        self._largest, self._largest_sum = torch.finfo(dtype).max, torch.finfo(accumulator).max
        # float64 is evaluated in float64, where adding less than half a unit in the last place changes nothing.
        finest = 2 * UNIT_ROUNDOFF[torch.float64]
        self._narrow = max(UNIT_ROUNDOFF[dtype], finest), underflow(dtype)
        self._wide = max(UNIT_ROUNDOFF[accumulator], finest), underflow(accumulator)
        #: The accumulator's roundoff.
        self.accumulator = max(UNIT_ROUNDOFF[accumulator], finest)
        #: Whether results are rounded more than the sums behind them.
        self.is_half = self._narrow[0] > self._wide[0]
        #: g(K) of the last product or sum.
        self._growth: Tensor | float = 0.0
        #: The last product, or the last sum that goes on with it, and g(K) of the product.
        self._product: tuple[Tensor, Tensor | float] | None = None

    @property
    def here(self) -> tuple[float, float]:
        """Unit roundoff and underflow of an operation, which depend on whether it is in a `wide` block."""
        return self._wide if region.wide else self._narrow

    @property
    def largest(self) -> float:
        """The largest number that a result may be: of the accumulator in a `wide` block, else of the dtype."""
        return self._largest_sum if region.wide else self._largest

    def of(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int, of_complex: bool
    ) -> Amplitude:
        """The amplitude of an operation. `place` and `of_complex` are those of `Rounding`."""
        # What an addition errs by depends on the block that it is in.
        is_small = result.dim() > 0 and result.numel() <= _FEW  # numpy has no arrays without dimensions
        if is_small and not of_complex and func is not _ADD and kind(func).of_each:
            return self._of_few(result, self._more_of_function(func, result, args))
        if of_complex:
            most, overflows = self._most_of_complex(func, result, args, kwargs), None
        else:
            most, overflows = self._most(func, result, args, kwargs, place)
        infinite = not math.isfinite(float(result.sum()))
        if infinite:
            most = most.masked_fill(~result.isfinite(), 0.0)
        unit = self.here[0]
        exact = _exact(result, most, unit)
        if exact is not None and func in PRODUCTS and not of_complex:
            exact = _exact_in_parts(exact, func, args, kwargs, unit)
        return Amplitude(most, exact, overflows, infinite)

    def _of_few(self, result: Tensor, more: Tensor | None) -> Amplitude:
        """The same for few elements, each rounded once, as `_most` and `_exact` find it; they err by `more` too."""
        unit, lost = self.here
        y = result.contiguous().numpy()
        is_finite = np.isfinite(y)
        with np.errstate(all="ignore"):
            most = np.abs(y)
            most *= unit
            most += lost
            if more is not None:
                most += more.contiguous().numpy()
        infinite = not is_finite.all()
        np.copyto(most, 0.0, where=y == 0)
        if infinite:
            np.copyto(most, 0.0, where=~is_finite)
        exact = (y.view(np.int64) & _beyond(unit)) == 0
        exact &= most != 0
        return Amplitude(torch.from_numpy(most), torch.from_numpy(exact) if exact.any() else None, None, infinite)

    def remember(self, func: Any, result: Tensor, args: tuple[Any, ...]) -> None:
        """Keep the result if something that is added to it may be where its sum begins."""
        if func in PRODUCTS:
            self._product = result, self._growth
        elif func is _ADD and self._product is not None and any(_is_part(term, self._product[0]) for term in args):
            self._product = result, self._product[1]

    def _most(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[Tensor, Tensor | None]:
        """The factor of xi for each element of the result, and a mask of those that may overflow, if there are any."""
        unit, lost = self.here
        if func in SCATTERS:
            return self._most_of_scattered(func, result, args, kwargs)
        if func in OF_TWO:
            return self._most_of_two(func, result, args, kwargs, place)
        if func in OVER_ALL:  # each factor is a rounding more
            rounded = unit + self.accumulator * math.sqrt(_factors(args))
            return (result.abs() * rounded + lost).masked_fill_(result == 0, 0.0), None
        terms = _terms(func, result, args)
        # Each term in an accumulator may underflow, and all of them in the same direction.
        lost += self._wide[1] * terms
        sums = func(args[0].abs(), *args[1:], **kwargs) if func in SUMS else None
        factors = [(factor.abs(), factor.square()) for factor in args[-2:]] if func in PRODUCTS else []
        if factors or sums is not None:  # also those of no terms: the growth is that of the last one
            self._growth = _growth(func, terms, args, self.accumulator)
        begins = args[0].abs().expand(result.shape) if func in _TO_ANOTHER else None
        added = self._most_of_added(result, args, unit) if func is _ADD else self._more_of_function(func, result, args)
        amplitude, overflows = torch.empty_like(result), torch.zeros((), dtype=torch.bool)
        stored = self.largest
        # Part by part, so that intermediate results stay in the cache.
        for part in parts_of(result):
            y = result[part]
            of_part = torch.abs(y, out=amplitude[part]).mul_(unit).add_(lost).masked_fill_(y == 0, 0.0)
            if factors:
                (left, left_squared), (right, right_squared) = factors
                both = part if right.dim() == 3 else ...
                magnitudes = left[part] @ right[both]
                if begins is not None:
                    magnitudes.add_(begins[part], alpha=abs(kwargs.get("beta", 1)))
                partial = (left_squared[part] @ right_squared[both]).sqrt_()
                sums_of_one_sign = (magnitudes + y.abs()).div_(2)
                overflows = _marked(overflows, result, part, sums_of_one_sign, self._largest_sum)
                overflows = _marked(overflows, result, part, sums_of_one_sign.minimum(partial * PARTS), stored)
                of_part.add_(_times(magnitudes, self._growth, part), alpha=self.accumulator)
                of_part.add_(partial, alpha=unit)
            elif sums is not None:
                divisor = terms if func in MEANS else 1
                overflows = _marked(overflows, result, part, sums[part] + y.abs(), 2 * self._largest_sum / divisor)
                of_part.add_(_times(sums[part], self._growth, part), alpha=self.accumulator)
            elif added is not None:
                of_part.add_(added[part])
        return amplitude, overflows if overflows.dim() or bool(overflows) else None

    def _most_of_added(self, result: Tensor, args: tuple[Any, ...], unit: float) -> Tensor | None:
        """By how much more an addition errs whose terms are parts of longer sums; None where they are not."""
        more = None
        if region.any_order and all(is_real(term) for term in args):
            more = (args[0].abs() + args[1].abs()).mul_(unit)
        elif region.one_sum:
            more = _times(result.abs(), self._growth, ...).mul_(self.accumulator)
        if self._product is not None:
            product, growth = self._product
            for this, other in (args[:2], args[1::-1]):
                if is_real(other) and _is_part(this, product):
                    if isinstance(growth, Tensor):
                        is_whole = this.numel() == growth.numel() and this.is_contiguous()
                        growth = growth.reshape(this.shape) if is_whole else growth.amax()
                    of_other = (other.abs() * growth).mul_(self.accumulator)
                    more = of_other if more is None else more + of_other
                    break
        return None if more is None else more.expand(result.shape)

    def _more_of_function(self, func: Any, result: Tensor, args: tuple[Any, ...]) -> Tensor | None:
        """By how much more an exponential errs whose exponent was rounded, or an erf; None for other operations."""
        if func is _ERF:
            return result.abs().mul_(_OF_ERF * self.accumulator)
        if func not in (_EXP, _SIGMOID):
            return None
        slope = result if func is _EXP else result * (1 - result)
        more: Tensor = (args[0].abs() * slope).mul_(self.accumulator)
        return more.nan_to_num_(0.0, 0.0)  # an infinite exponent makes 0, 1 or infinity of it, and no error

    def _most_of_scattered(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """The same for a sum whose elements have different numbers of terms, which a sum of ones counts."""
        unit, lost = self.here
        terms, sums = (
            func(*(change(x) if is_real(x) else x for x in args), **kwargs) for change in (torch.ones_like, torch.abs)
        )
        added = [x for x in args if is_real(x)][-1]
        repeated = added.numel() > 0 and repeats(added.reshape(1, -1), self.accumulator) is not None
        terms = terms * window(func, args)
        growth = torch.maximum(terms.sqrt(), terms / 2) if repeated else terms.sqrt()
        amplitude = result.abs() * unit + (lost + self._wide[1] * terms) + self.accumulator * growth * sums
        overflows = (sums + result.abs()) / 2 > self._largest_sum
        return amplitude.masked_fill_(result == 0, 0.0), overflows if bool(overflows.any()) else None

    def _most_of_complex(self, func: Any, parts: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """The factor of xi for both parts of each number: each of them is a sum of two products."""
        unit, lost = self.here
        amplitude = parts.norm(dim=-1) * unit + lost
        if func in PRODUCTS or func in SUMS:
            of_sizes: Tensor = func(*(x.abs() if isinstance(x, Tensor) else x for x in args), **kwargs)
            amplitude += of_sizes * self.accumulator * math.sqrt(_terms(func, amplitude, args))
        of_parts: Tensor = amplitude.unsqueeze(-1).expand(parts.shape)
        return of_parts.masked_fill(parts == 0, 0.0)

    def _most_of_two(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[Tensor, Tensor | None]:
        """The same for sums of products of two factors, such as convolutions: calls with other values give the sums."""
        unit, lost = self.here

        def of(change: Callable[[Tensor], Tensor]) -> Tensor:
            found = func(*(change(x) if is_real(x) else x for x in args), **kwargs)
            part: Tensor = found[place] if isinstance(found, tuple | list) else found
            return part

        terms, sums, partial = of(torch.ones_like), of(torch.abs), of(torch.square).sqrt_()
        factors = [x.reshape(1, -1) for x in args if is_real(x) and x.numel()]
        repeated = all(repeats(x, self.accumulator) is not None for x in factors)
        growth = torch.maximum(terms.sqrt(), terms / 2) if repeated else terms.sqrt()
        amplitude = result.abs() * unit + (lost + self._wide[1] * terms) + self.accumulator * growth * sums
        amplitude.add_(partial, alpha=unit)
        of_one_sign = (sums + result.abs()) / 2
        overflows = of_one_sign > self._largest_sum
        overflows |= of_one_sign.minimum(partial * PARTS) > self.largest
        return amplitude.masked_fill_(result == 0, 0.0), overflows if bool(overflows.any()) else None


def is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_part(value: Any, product: Tensor) -> bool:
    """Whether this is a view of the product: the product is kept, so that nothing else has its memory."""
    return is_real(value) and value.untyped_storage().data_ptr() == product.untyped_storage().data_ptr()


def _factors(args: tuple[Any, ...]) -> int:
    """How many elements a product over a dimension, or over all, multiplies."""
    tensor: Tensor = args[0]
    over_one = len(args) > 1 and tensor.dim() > 0
    return max(tensor.shape[args[1]] if over_one else tensor.numel(), 1)


def _marked(mask: Tensor, result: Tensor, part: Any, sizes: Tensor, limit: float) -> Tensor:
    """`mask`, or zeros of the shape of `result`, with the elements of a part set whose size is beyond the limit."""
    if sizes.numel() == 0 or not float(sizes.max()) > limit:
        return mask
    whole = mask if mask.shape == result.shape else torch.zeros_like(result, dtype=torch.bool)
    whole[part] |= sizes > limit
    return whole


def _exact(result: Tensor, most: Tensor, unit: float) -> Tensor | None:
    """Where a result is exact: a number of the dtype, or of float32 if the dtype is float64. None if nowhere."""
    exact = (result.contiguous().view(torch.int64) & _beyond(unit)) == 0
    exact &= most != 0
    return exact if bool(exact.any()) else None


def _exact_in_parts(
    exact: Tensor, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], unit: float
) -> Tensor | None:
    """Where all partial sums of an exact product are exact too, as far as the sum of all sizes shows. None if nowhere.

    A product whose terms cancel may happen to be a number of the dtype, although its parts have to be rounded.
    """
    sizes = func(*(factor.abs() for factor in args), **kwargs)
    return _exact(sizes, exact, unit)


@cache
def _beyond(unit: float) -> int:
    """The bits of a float64 that are 0 in such a number."""
    return (1 << 53 - min(round(-math.log2(unit)), 24)) - 1


def _terms(func: Any, result: Tensor, args: tuple[Any, ...]) -> int:
    """How many terms each element of a product or a sum adds up; 0 for any other operation."""
    if func in PRODUCTS:
        return int(args[-2].shape[-1])
    return max(args[0].numel() // max(result.numel(), 1), 1) if func in SUMS else 0


def _growth(func: Any, terms: int, args: tuple[Any, ...], unit: float) -> Tensor | float:
    """g(K) of the module's docstring: one number if it is sqrt(K) everywhere, else one for each element."""
    least = math.sqrt(terms)
    if terms / 2 <= least:  # even if all were equal
        return least
    if func in PRODUCTS:
        left, right = args[-2], args[-1].mT
        # Most products have no equal terms; the smaller factor shows that sooner.
        fewer, more = (left, right) if left.numel() < right.numel() else (right, left)
        squares = repeats(fewer, unit)
        others = repeats(more, unit) if squares is not None else None
        if squares is None or others is None:
            return least
        of_left, of_right = (squares, others) if fewer is left else (others, squares)
        squares = torch.minimum(of_left.unsqueeze(-1), of_right.unsqueeze(-2))
    else:
        tensor, dims = args[0], tuple(args[1] if len(args) > 1 and args[1] else range(args[0].dim()))
        dims = tuple(sorted(dim % tensor.dim() for dim in dims))
        kept = [dim for dim in range(tensor.dim()) if dim not in dims]
        squares = repeats(tensor.permute(*kept, *dims).flatten(len(kept)), unit)
        if squares is None:
            return least
        for dim in dims if len(args) > 2 and args[2] else ():
            squares = squares.unsqueeze(dim)
    growth = squares.sqrt_().div_(2)
    return growth.clamp_min_(least) if bool((growth > least).any()) else least


def _times(sums: Tensor, growth: Tensor | float, part: Any) -> Tensor:
    """The `part` of a result times its growth."""
    return sums.mul_(growth[part] if isinstance(growth, Tensor) else growth)
