r"""How much error a dtype may cause: Monte Carlo arithmetic on the reference.

A fixed table of tolerances is too loose for one operator and too tight for another. Here the allowance is measured on
the reference. `Rounding` is a dispatch mode: every arithmetic operation is evaluated in float64, and returns what a
unit with roundoff u could have returned:

    fl(op(x)) = op(x) + (u |op(x)| + eta) xi + u_acc op(x) beta,        xi and beta uniform in [-1, 1]

- xi is independent for each value. Equal operands are rounded equally, so elements of equal value share one xi, in all
  rows of a batch. xi is 0 where op(x) needs no rounding; for a product, where the sum of the sizes of its terms needs
  none either. But values that are equal or exact here need not be so in another computation of the same result: in
  half of the runs each element has its own xi (`spec.noise`).
- eta is what may be lost to underflow. It is 0 where op(x) is 0: a value that is exactly at a kink stays there.
- beta is one number for all elements of an operation. It stands for a bias, which no number of elements averages away:
  a compiler replaces a division by a constant by a product with the rounded reciprocal, or an exp or rsqrt is one unit
  in the last place too high.

A product or a sum over K terms also errs in its accumulator:

    fl(A @ B) = A @ B + (u |A @ B| + eta + K eta_acc + u_acc g(K) (|A| @ |B|) + u sqrt(A^2 @ B^2)) xi

- u_acc is the accumulator's roundoff: 2^-24 for the half types, which accumulate in float32.
- eta_acc is what one term may lose to underflow in the accumulator.
- g(K) is sqrt(K) for terms that are rounded independently. Equal terms are not: each addition of the same value errs by
  the same amount while the sum stays between two powers of 2. So with n_1, n_2, ... terms of each value,

      g(K) = max(sqrt(K), sqrt(n_1^2 + n_2^2 + ...) / 2)

  If all terms are equal this is K/2, the largest error of adding them one after another. Values within 64 u_acc of each
  other count as equal, because equal results of different operands are rounded differently. A term of a product has
  two factors: the factor with the smaller n_1^2 + n_2^2 + ... counts.
- u sqrt(A^2 @ B^2) is for products that are computed in parts, each rounded to the dtype, for example input and state
  of a recurrent cell. It is the size of a partial sum whose terms have random signs.

What is added to a product may be where its sum begins: BLAS adds the terms of A @ B to C one by one, for few rows, and
so does a kernel whose accumulator starts with the bias. So an addition to a product, or to a part of one, errs by

    fl(A @ B + C) = (A @ B + C) + (u |A @ B + C| + eta + u_acc g(K) |C|) xi

and so does what is added after it. `addmm` and `baddbmm` err by as much.

An exponential may be 2 to the power of x log2(e), as GPUs compute it, a product that is rounded in the accumulator. So
exp(x) errs by u_acc |x| exp(x) more, and so does what a sigmoid has of it: u_acc |x| s (1 - s).

A result beyond the largest number of its dtype is infinite. Terms of a product or a sum may add up to a finite number
although their partial sums, in some order, overflow the accumulator. The largest partial sum of any order is that of
all terms of one sign, (sum |t| + |sum t|) / 2. Where it is beyond the accumulator's range, the result is infinite in
half of the runs. Parts of a product that are rounded to the dtype may overflow its range; there the largest partial sum
is taken to be at most `PARTS` sqrt(A^2 @ B^2), because few sums of terms of random sign exceed that.

Operations that only move, select or compare data are exact. `spec.operations` lists them; every other one rounds. Both
parts of a complex number err as a real number of its size.

In a block `with wide(...)`, u_acc replaces u: so a contract states which parts the half types compute in float32. What
is added in a block `with one_sum()` may be one sum of all the terms. In a block `with apart(x)`, equal elements may err
differently where those of x differ. The docstrings of these functions say more.

Sources: D. S. Parker, "Monte Carlo arithmetic" (1997); N. J. Higham and T. Mary, "A new approach to probabilistic
rounding error analysis" (2019), for sqrt(K) in place of K.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from spec.decomposing import functional, steps
from spec.kinds import kind
from spec.modes import EagerMode
from spec.noise import Noise
from spec.operations import COMPUTED, MEANS, MOVES, OF_TWO, OVER_ALL, PRODUCTS, SCATTERS, SUMS, window
from spec.parts import parts_of
from spec.picks import PICKS, Picks
from spec.repeats import repeats

#: Unit roundoff: half the distance from 1 to the next number.
UNIT_ROUNDOFF = {
    torch.float64: 2.0**-53,
    torch.float32: 2.0**-24,
    torch.float16: 2.0**-11,
    torch.bfloat16: 2.0**-8,
}

#: Largest partial sum that products computed in parts have, in units of sqrt(A^2 @ B^2).
PARTS = 4

#: How far an element of one run may exceed the amplitude of another run, relative to it.
_FOLDED = 2.0**-6
#: Of elements smaller than this many roundings of the largest one, but at most a quarter of it, nothing is known: what
#: cancels to 0 is another rounding error in each run.
_CANCELLED, _SMALL = 256, 0.25

_aten = torch.ops.aten
_ADD, _ELU_BACKWARD, _TO_COPY = _aten.add.Tensor, _aten.elu_backward.default, _aten._to_copy.default
_EXP, _SIGMOID = _aten.exp.default, _aten.sigmoid.default
_SCATTER_REDUCE = _aten.scatter_reduce.two
_SOFTMAX = frozenset({_aten._softmax.default, _aten._safe_softmax.default})
_SOFTMAX_BACKWARD = _aten._softmax_backward_data.default
#: Largest error of an exponent with which a softmax is computed again: beyond, its weights are not what they were.
_AGAIN = 2.0**-6
#: Up to this many elements, numpy is faster than torch.
_FEW = 2**12
_MULTIPLY = PRODUCTS | OF_TWO
#: Products that are added to their first argument.
_TO_ANOTHER = frozenset({_aten.addmm.default, _aten.baddbmm.default})
_LARGEST_OF_ALL = torch.finfo(torch.float64).max


class _Region(threading.local):
    """How many blocks of each name this thread is in, and the tensor of the last `apart` block."""

    wide = 0
    one_sum = 0
    any_order = 0
    again = 0
    apart = 0
    extreme = 0
    beside: Tensor | None = None
    #: Whether the result of the next operation is the tensor of the `apart` block.
    awaited = False
    #: Whether the next operation rounds a tensor of a `wide` block to the dtype: see `narrowed`.
    narrows = False
    #: Whether this is a run of a half type.
    of_half = False


_region = _Region()


@contextmanager
def _inside(block: str) -> Iterator[None]:
    setattr(_region, block, getattr(_region, block) + 1)
    try:
        yield
    finally:
        setattr(_region, block, getattr(_region, block) - 1)


@contextmanager
def wide(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """In this block a reference computes in float32 for half types, and in the dtype itself otherwise.

    Yields the tensors in that dtype. Under `Rounding`, operations in the block err by the accumulator's roundoff.
    """
    with _inside("wide"):
        yield tuple(tensor.to(torch.promote_types(tensor.dtype, torch.float32)) for tensor in tensors)


def one_sum() -> AbstractContextManager[None]:
    """In this block a reference adds products to each other; an implementation may add all their terms one by one.

    Under `Rounding`, an addition in the block errs as much as if the terms of the last product or sum were added to its
    result one after another.
    """
    return _inside("one_sum")


def of_half() -> bool:
    """Whether this is a run under `Rounding` of a half type, whose sums are rounded less than its results."""
    return _region.of_half


def inside(block: str) -> bool:
    """Whether this thread is in a block of that name: `wide`, `one_sum` or `apart`."""
    return bool(getattr(_region, block))


def any_order() -> AbstractContextManager[None]:
    """In this block an implementation may add what a reference adds in another order.

    Under `Rounding`, an addition in the block errs by the roundoff of its two terms: another order has other partial
    sums. It is for the gradients that autograd adds up where a tensor is used several times.
    """
    return _inside("any_order")


def again() -> AbstractContextManager[None]:
    """In this block a reference computes what backward may compute again: a softmax, of its logsumexp.

    FlashAttention keeps no weights but the logarithm of their sum, and its backward has exp(score - logsumexp). Where
    the logsumexp is large, that rounds otherwise than exp(score - largest) / sum. So under `Rounding`, what an
    `any_order` block computes of a softmax of this block is computed of such weights in half of the runs.
    """
    return _inside("again")


@contextmanager
def apart(tensor: Tensor) -> Iterator[None]:
    """In this block elements of equal value have different errors where those of `tensor` differ, in all runs.

    It is for a value that the reference computes once and an implementation may compute again for each element of
    `tensor`, which has the shape of the results in the block. Equal elements may still have equal errors: those of
    equal rows, for example.
    """
    outer = _region.beside
    _region.awaited = True
    tensor.view_as(tensor)  # under vmap, only the mode sees the elements of all runs
    _region.awaited = False
    try:
        with _inside("apart"):
            yield
    finally:
        _region.beside = outer


def one_rounding(tensor: Tensor, beside: Tensor | None = None) -> Tensor:
    """0; under `Rounding`, all that one rounding may change each element by, up or down.

    Equal elements have equal signs in half of the runs; with `beside`, those that are beside equal elements of it.
    """
    with apart(tensor if beside is None else beside), _inside("extreme"):
        return tensor * 1 - tensor


def stored(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """The tensor as `dtype` stores it. It is rounded once, also under `Rounding`; call it outside of `wide` there."""
    return (tensor * 1).to(dtype)


def narrowed(tensor: Tensor) -> Tensor:
    """A tensor of a `wide` block, in float64 and rounded once to the dtype.

    An implementation may save what it returns, in the dtype, where the reference saves the wide tensor. So under
    `Rounding`, what an `any_order` block computes of the wide tensor is computed of this one in half of the runs.
    """
    _region.narrows = True
    try:
        return tensor.double() * 1
    finally:
        _region.narrows = False


@dataclass(frozen=True)
class Amplitude:
    """The largest error of each element of an operation's result.

    `exact` masks those that need no rounding, and `overflows` those whose partial sums may overflow, if there are any.
    """

    most: Tensor
    exact: Tensor | None
    overflows: Tensor | None
    #: Whether some elements are not finite.
    infinite: bool = False


def _is_extreme(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it reduces by index to the largest or smallest: no rounding. Backward looks for equal elements."""
    return func is _SCATTER_REDUCE and kwargs.get("reduce", args[4] if len(args) > 4 else "") in ("amax", "amin")


def knows(func: Any) -> bool:
    """Whether the model knows how an operation rounds: no rounding, a product, a sum, steps, or one of each element."""
    func = functional(func) or func
    listed = MOVES | COMPUTED | PRODUCTS | OF_TWO | OVER_ALL | SUMS | SCATTERS | {_aten._to_copy.default}
    return kind(func).changes_shape or func in listed or steps(func) is not None or torch.Tag.pointwise in func.tags


class Amplitudes:
    """The amplitude of each operation of a run, for later runs. Their amplitudes differ only by a factor of 1 +- u."""

    #: Bytes that may be stored. Products do not count: to compute their amplitude again takes two more products.
    _MOST = 2**28

    def __init__(self) -> None:
        self._known: dict[int, Amplitude] = {}
        self._bytes = 0
        #: Elements of the largest result so far.
        self.largest = 0
        #: The dimension that holds the runs, for each operation, if one run was made under vmap too: `spec.mapped`.
        self.dims: dict[int, int] | None = None

    def of(self, number: int) -> Amplitude | None:
        """The amplitude of the operation with this number; None if it is not stored."""
        return self._known.get(number)

    def hold(self, number: int, amplitude: Amplitude, product: bool) -> None:
        """Store it if there is room; that of a product always."""
        most = amplitude.most
        self.largest = max(self.largest, most.numel())
        if product or self._bytes + most.nbytes <= self._MOST:
            self._known[number] = amplitude
            self._bytes += most.nbytes


def dim_of_runs(one: Tensor, many: Tensor, runs: int) -> int | None:
    """The dimension in which a result of several runs is so many times as long as that of one run; None if not in one.

    Both are results under vmap: that of one run has a dimension for the run too, alone or as a part of another one.
    """
    if one.dim() != many.dim():
        return None
    unlike = [dim for dim in range(one.dim()) if one.shape[dim] != many.shape[dim]]
    if len(unlike) != 1:
        return 0 if one.numel() == many.numel() == 0 else None
    return unlike[0] if many.shape[unlike[0]] == runs * one.shape[unlike[0]] else None


def parted(many: Tensor, dim: int, runs: int) -> Tensor:
    """The results of all runs, which lie one after another in that dimension, in a first dimension of their own."""
    return many.reshape(*many.shape[:dim], runs, -1, *many.shape[dim + 1 :]).movedim(dim, 0)


class UnlikeOneRun(Exception):
    """Evaluated for many runs at once, the sequence of operations is not that of one run."""


class Rounding(EagerMode):  # type: ignore[no-untyped-call]
    """Evaluate in float64 what `dtype` might have computed; another `seed` is another rounding of the same evaluation.

    `amplitudes` is shared by several evaluations of the same function. With `runs` > 1, the runs have the seeds `seed`,
    `seed + 1`, ..., and the first dimension of every result holds their parts one after another, each `length` long.

    Every error is `times` as large as rounding makes it. If that is more than once, operations that pick elements by
    their values err too: see `spec.picks`.

    Raises UnlikeOneRun if a result of several runs has another shape, or if `amplitudes` does not know its operation.
    """

    def __init__(
        self,
        dtype: torch.dtype,
        seed: int,
        amplitudes: Amplitudes | None = None,
        runs: int = 1,
        length: int = 1,
        times: float = 1.0,
    ) -> None:
        super().__init__()
        self._times = times
        self._picks = Picks(times, seed) if times > 1 else None
        self._amplitudes, self._runs, self._length = amplitudes, runs, length
        #: Operations that were rounded so far.
        self.number = 0
        accumulator = dtype if UNIT_ROUNDOFF[dtype] <= UNIT_ROUNDOFF[torch.float32] else torch.float32
        self._largest, self._largest_sum = torch.finfo(dtype).max, torch.finfo(accumulator).max
        # float64 is evaluated in float64, where adding less than half a unit in the last place changes nothing.
        finest = 2 * UNIT_ROUNDOFF[torch.float64]
        self._narrow = max(UNIT_ROUNDOFF[dtype], finest), underflow(dtype)
        self._wide = max(UNIT_ROUNDOFF[accumulator], finest), underflow(accumulator)
        self._accumulator = max(UNIT_ROUNDOFF[accumulator], finest)
        #: What `of_half` was before each block that this mode is in.
        self._before: list[bool] = []
        #: g(K) of the last product or sum.
        self._growth: Tensor | float = 0.0
        #: The last product, or the last sum that goes on with it, and g(K) of the product.
        self._product: tuple[Tensor, Tensor | float] | None = None
        self._noise = Noise(seed, runs)
        #: The runs in which a sum that may overflow does.
        self._overflowing = [run for run in range(runs) if (seed + run) & 4]
        #: The runs that save narrow results, and by its address each wide tensor with its narrow one.
        self._saving = torch.tensor([bool((seed + run) & 8) for run in range(runs)])
        self._narrowed: dict[int, tuple[Tensor, Tensor]] = {}
        #: By its address each softmax with what backward may have in its place.
        self._again: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> Self:
        self._before.append(_region.of_half)
        _region.of_half = self._narrow[0] > self._wide[0]
        return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        _region.of_half = self._before.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, own_kind = kwargs or {}, kind(func)
        if own_kind.changes_shape:
            return func(*args, **kwargs)
        if own_kind.writes and _is_real(args[0]):
            if own_kind.instead is not None:
                return args[0].copy_(self.__torch_dispatch__(own_kind.instead, types, args, kwargs))
            raise TypeError(f"{func} works in place, so its result cannot be rounded: a reference must not use it")
        if func is _ELU_BACKWARD and not args[4]:
            return self._slope_of_elu(func, *args)
        made_of = own_kind.made_of
        if made_of is not None and own_kind.returns_a_part:  # a view, such as the real part of complex numbers
            with self:
                return made_of(*args, **kwargs)
        if (self._narrowed or self._again) and _region.any_order:
            # Faster than tree_map_only for all arguments, which most of the time has nothing to do.
            args = tuple(self._saved(arg) if isinstance(arg, Tensor) else self._all_saved(arg) for arg in args)
        if made_of is not None:
            result = self._composed(made_of, args, kwargs)
            if func is _SOFTMAX_BACKWARD and self._again and _region.any_order:
                return self._with_product(result, *args[:3])
            if func in _SOFTMAX and _region.again and not _region.any_order and result.numel():
                self._again[result.data_ptr()] = result, self._of_logsumexp(result, args[0], args[1])
            return result
        if self._picks is not None and func in PICKS:
            return self._picks.of(func, args, kwargs, self._accumulator)
        result = func(*args, **kwargs)
        if _region.awaited:
            _region.beside = result
        if _region.narrows and _is_real(result):
            own = self._rounded(func, result, args, kwargs)
            self._narrowed[args[0].data_ptr()] = args[0], own
            return own
        if own_kind.moves or (func is _TO_COPY and result.dtype == torch.float64) or _is_extreme(func, args, kwargs):
            return result
        if isinstance(result, tuple | list):
            return type(result)(self._rounded(func, part, args, kwargs, k) for k, part in enumerate(result))
        return self._rounded(func, result, args, kwargs)

    def _composed(self, made_of: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an operation of several steps returns: computed in the accumulator's dtype, and rounded once."""
        with self:
            with _inside("wide"):
                results = made_of(*args, **kwargs)
            return tree_map_only(Tensor, lambda tensor: tensor * 1 if _is_number(tensor) else tensor, results)

    def _of_logsumexp(self, weights: Tensor, scores: Tensor, dim: int) -> Tensor:
        """The weights of a softmax; in half of the runs, as they are computed again of scores and their logsumexp."""
        with self, _inside("wide"):
            again = scores * 1
            largest = again.amax(dim, keepdim=True)
            total = largest + (again - largest).exp().sum(dim, keepdim=True).log()
            again = (again - total).exp()
            near = total.abs() * self._accumulator <= _AGAIN
        chosen = near & self._in_saving_runs(weights)
        return torch.where(chosen, again, weights)

    def _with_product(self, usual: Tensor, g: Tensor, weights: Tensor, dim: int) -> Tensor:
        """The gradient of a softmax; in half of the runs, with sum(g y) as a product of what is stored.

        FlashAttention has it as the product of the output, as the dtype stores it, and the output's gradient.
        """
        with self:
            left, right = (tensor.movedim(dim, -1) for tensor in (g, weights))
            product = (left.unsqueeze(-2) @ right.unsqueeze(-1)).squeeze(-1).movedim(-1, dim)
            with _inside("wide"):
                other = weights * (g - product)
            other = other * 1
        return torch.where(self._in_saving_runs(usual), other, usual)

    def _slope_of_elu(
        self, func: Any, g: Tensor, alpha: float, scale: float, input_scale: float, _: bool, x: Tensor
    ) -> Tensor:
        """The gradient of elu(x) from x; in half of the runs from the result, in the dtype, as where elu is in place.

        Below 0 the slope is exp(x), and also elu(x) + 1: the second has fewer digits where it is small.
        """
        made_of = steps(func)
        assert made_of is not None
        with self:
            result = _aten.elu(x, alpha, scale, input_scale)
        of_argument = self._composed(made_of, (g, alpha, scale, input_scale, False, x), {})
        of_result = self._composed(made_of, (g, alpha, scale, input_scale, True, result), {})
        return torch.where(self._in_saving_runs(x), of_result, of_argument)

    def _in_saving_runs(self, tensor: Tensor) -> Tensor:
        """The runs that save narrow results, of a shape that meets a tensor of all runs."""
        if self._runs == 1:
            return self._saving[0]
        if tensor.shape[0] % self._runs:
            raise UnlikeOneRun
        saving = self._saving.repeat_interleave(tensor.shape[0] // self._runs)
        return saving.view(-1, *[1] * (tensor.dim() - 1))

    def _rounded(
        self,
        func: Any,
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: int = 0,
        of_complex: bool = False,
    ) -> Any:
        """The result with an error; `place` is its place among the results of the operation.

        `of_complex`: it has the parts of complex numbers.
        """
        if not _is_number(result):
            return result
        if result.is_complex():
            parts = torch.view_as_real(result.resolve_conj())
            return torch.view_as_complex(self._rounded(func, parts, args, kwargs, of_complex=True))
        if result.dtype != torch.float64:
            raise TypeError(
                f"{func} made {result.dtype} of float64, but should return float64 in the model of rounding: a "
                "reference must stay in the dtype that it is given, or promote it, as `spec.rounding.wide` does"
            )
        of_runs = result.dim() > 0 and result.shape[0] == self._runs * self._length
        if self._runs > 1 and self._amplitudes is None and not of_runs:
            raise UnlikeOneRun
        number, self.number = self.number, self.number + 1
        return self._with_errors(func, result, number, args, kwargs, place, of_complex)

    def _with_errors(
        self,
        func: Any,
        result: Tensor,
        number: int,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        place: int,
        of_complex: bool,
    ) -> Tensor:
        """The result of the operation with that number, with its errors."""
        amplitude = self._known(number, result)
        is_new = amplitude is None
        if amplitude is None:
            amplitude = self._found(func, result, args, kwargs, place, of_complex)
            if self._amplitudes:
                self._amplitudes.hold(number, amplitude, func in _MULTIPLY)
        own = owned(func, result)
        dims = self._amplitudes.dims if self._amplitudes is not None and self._runs > 1 else None
        dim = dims[number] if dims else 0
        if dim:
            if _region.beside is not None:
                raise UnlikeOneRun
            own = parted(own, dim, self._runs).contiguous()
        before = own.clone() if amplitude.infinite else None
        most, common = amplitude.most, self._accumulator
        if self._times > 1:
            most, common = most * self._times, common * self._times
        self._noise.add(own, most, common, number, amplitude.exact, _region.beside, bool(_region.extreme))
        if before is not None:  # what is infinite stays infinite: a mask of -inf has no error
            own = torch.where(before.isfinite(), own, before)
        self._overflow(own, amplitude.overflows)
        own = own.movedim(0, dim).reshape(result.shape) if dim else own
        if is_new and (func is _ADD or func in PRODUCTS):
            self._remember_product(func, own, args)
        return own

    def _remember_product(self, func: Any, result: Tensor, args: tuple[Any, ...]) -> None:
        """Keep the result if something that is added to it may be where its sum begins."""
        if func in PRODUCTS:
            self._product = result, self._growth
        elif self._product is not None and any(_is_part(term, self._product[0]) for term in args):
            self._product = result, self._product[1]

    def _found(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int, of_complex: bool
    ) -> Amplitude:
        """The amplitude of an operation."""
        # What an addition errs by depends on the block that it is in.
        is_small = result.dim() > 0 and result.numel() <= _FEW  # numpy has no arrays without dimensions
        if is_small and not of_complex and func is not _ADD and kind(func).of_each:
            return self._found_of_few(result, self._most_of_exponent(func, result, args))
        if of_complex:
            most, overflows = self._most_of_complex(func, result, args, kwargs), None
        else:
            most, overflows = self._most(func, result, args, kwargs, place)
        infinite = not math.isfinite(float(result.sum()))
        if infinite:
            most = most.masked_fill(~result.isfinite(), 0.0)
        unit = self._wide[0] if _region.wide else self._narrow[0]
        exact = _exact(result, most, unit)
        if exact is not None and func in PRODUCTS and not of_complex:
            exact = _exact_in_parts(exact, func, args, kwargs, unit)
        return Amplitude(most, exact, overflows, infinite)

    def _found_of_few(self, result: Tensor, more: Tensor | None) -> Amplitude:
        """The same for few elements, each rounded once, as `_most` and `_exact` find it; they err by `more` too."""
        unit, lost = self._wide if _region.wide else self._narrow
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

    def _all_saved(self, argument: Any) -> Any:
        return tree_map_only(Tensor, self._saved, argument) if isinstance(argument, tuple | list) else argument

    def _saved(self, tensor: Tensor) -> Tensor:
        """What backward finds in place of a tensor that forward has computed: the narrow one in some runs."""
        whole, other = self._again.get(tensor.data_ptr(), (None, None))
        if whole is not None and other is not None and 0 < tensor.numel() == whole.numel() and whole.is_contiguous():
            tensor = other.contiguous().as_strided(tensor.shape, tensor.stride())
        wide, narrow = self._narrowed.get(tensor.data_ptr(), (None, None))
        if wide is None or narrow is None or tensor.shape != wide.shape or tensor.stride() != wide.stride():
            return tensor
        if tensor.numel() == 0:  # all tensors without elements have one address
            return tensor
        if self._runs == 1:
            return narrow if bool(self._saving) else tensor
        return torch.where(self._in_saving_runs(tensor), narrow, tensor)

    def _overflow(self, own: Tensor, overflows: Tensor | None) -> None:
        """Make infinite what is beyond the range, and in some runs what may overflow."""
        if overflows is not None:
            of_runs = own.reshape(self._runs, -1)
            for run in self._overflowing:
                of_runs[run, overflows.reshape(-1)] *= math.inf
            own.copy_(of_runs.reshape(own.shape))
        limit = self._largest_sum if _region.wide else self._largest
        if own.numel() == 0 or limit == _LARGEST_OF_ALL:
            return
        least, most = torch.aminmax(own)
        if not max(-float(least), float(most)) <= limit:  # also if one is NaN
            own.masked_fill_(own > limit, math.inf).masked_fill_(own < -limit, -math.inf)

    def _known(self, number: int, result: Tensor) -> Amplitude | None:
        """The amplitude that an earlier run stored for the operation with this number."""
        if self._amplitudes is None:
            return None
        known = self._amplitudes.of(number)
        if self._runs == 1:
            return known if known is not None and known.most.shape == result.shape else None
        if self._amplitudes.dims is not None and known is not None:
            dim = dim_of_runs(known.most, result, self._runs)
            if dim is None or dim != self._amplitudes.dims.get(number):
                raise UnlikeOneRun
            return known
        if known is None or not (result.shape == (self._runs, *known.most.shape) or self._is_folded(known, result)):
            raise UnlikeOneRun
        return known

    def _is_folded(self, known: Amplitude, result: Tensor) -> bool:
        """Whether vmap has made one dimension of the runs and the first one, or one of all others.

        No large element may be larger than its amplitude admits: some would be if their order were not that of one run.
        """
        shape = known.most.shape
        folded = len(shape) > 1 and tuple(result.shape) in (
            (self._runs * shape[0], *shape[1:]),
            (self._runs, known.most.numel()),
        )
        if not folded or known.infinite:
            return False
        unit = (self._wide if _region.wide else self._narrow)[0]
        of_runs = result.reshape(self._runs, *shape)
        # The largest of all runs: what holds of it holds of each.
        sizes = torch.maximum(of_runs.amax(0), -of_runs.amin(0))
        is_admitted = sizes * unit <= known.most * (1 + _FOLDED)
        if bool(is_admitted.all()):
            return True
        return bool((is_admitted | (sizes <= min(_CANCELLED * unit, _SMALL) * sizes.amax())).all())

    def _most(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[Tensor, Tensor | None]:
        """The factor of xi for each element of the result, and a mask of those that may overflow, if there are any."""
        unit, lost = self._wide if _region.wide else self._narrow
        if func in SCATTERS:
            return self._most_of_scattered(func, result, args, kwargs)
        if func in OF_TWO:
            return self._most_of_two(func, result, args, kwargs, place)
        if func in OVER_ALL:  # each factor is a rounding more
            rounded = unit + self._accumulator * math.sqrt(_factors(args))
            return (result.abs() * rounded + lost).masked_fill_(result == 0, 0.0), None
        terms = _terms(func, result, args)
        # Each term in an accumulator may underflow, and all of them in the same direction.
        lost += self._wide[1] * terms
        sums = func(args[0].abs(), *args[1:], **kwargs) if func in SUMS else None
        factors = [(factor.abs(), factor.square()) for factor in args[-2:]] if func in PRODUCTS else []
        if factors or sums is not None:  # also those of no terms: the growth is that of the last one
            self._growth = _growth(func, terms, args, self._accumulator)
        begins = args[0].abs().expand(result.shape) if func in _TO_ANOTHER else None
        added = self._most_of_added(result, args, unit) if func is _ADD else self._most_of_exponent(func, result, args)
        amplitude, overflows = torch.empty_like(result), torch.zeros((), dtype=torch.bool)
        stored = self._largest_sum if _region.wide else self._largest
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
                of_part.add_(_times(magnitudes, self._growth, part), alpha=self._accumulator)
                of_part.add_(partial, alpha=unit)
            elif sums is not None:
                divisor = terms if func in MEANS else 1
                overflows = _marked(overflows, result, part, sums[part] + y.abs(), 2 * self._largest_sum / divisor)
                of_part.add_(_times(sums[part], self._growth, part), alpha=self._accumulator)
            elif added is not None:
                of_part.add_(added[part])
        return amplitude, overflows if overflows.dim() or bool(overflows) else None

    def _most_of_added(self, result: Tensor, args: tuple[Any, ...], unit: float) -> Tensor | None:
        """By how much more an addition errs whose terms are parts of longer sums; None where they are not."""
        more = None
        if _region.any_order and all(_is_real(term) for term in args):
            more = (args[0].abs() + args[1].abs()).mul_(unit)
        elif _region.one_sum:
            more = _times(result.abs(), self._growth, ...).mul_(self._accumulator)
        if self._product is not None:
            product, growth = self._product
            for this, other in (args[:2], args[1::-1]):
                if _is_real(other) and _is_part(this, product):
                    if isinstance(growth, Tensor):
                        is_whole = this.numel() == growth.numel() and this.is_contiguous()
                        growth = growth.reshape(this.shape) if is_whole else growth.amax()
                    of_other = (other.abs() * growth).mul_(self._accumulator)
                    more = of_other if more is None else more + of_other
                    break
        return None if more is None else more.expand(result.shape)

    def _most_of_exponent(self, func: Any, result: Tensor, args: tuple[Any, ...]) -> Tensor | None:
        """By how much more an exponential errs whose exponent was rounded; None for other operations."""
        if func not in (_EXP, _SIGMOID):
            return None
        slope = result if func is _EXP else result * (1 - result)
        more: Tensor = (args[0].abs() * slope).mul_(self._accumulator)
        return more.nan_to_num_(0.0, 0.0)  # an infinite exponent makes 0, 1 or infinity of it, and no error

    def _most_of_scattered(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """The same for a sum whose elements have different numbers of terms, which a sum of ones counts."""
        unit, lost = self._wide if _region.wide else self._narrow
        terms, sums = (
            func(*(change(x) if _is_real(x) else x for x in args), **kwargs) for change in (torch.ones_like, torch.abs)
        )
        added = [x for x in args if _is_real(x)][-1]
        repeated = added.numel() > 0 and repeats(added.reshape(1, -1), self._accumulator) is not None
        terms = terms * window(func, args)
        growth = torch.maximum(terms.sqrt(), terms / 2) if repeated else terms.sqrt()
        amplitude = result.abs() * unit + (lost + self._wide[1] * terms) + self._accumulator * growth * sums
        overflows = (sums + result.abs()) / 2 > self._largest_sum
        return amplitude.masked_fill_(result == 0, 0.0), overflows if bool(overflows.any()) else None

    def _most_of_complex(self, func: Any, parts: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """The factor of xi for both parts of each number: each of them is a sum of two products."""
        unit, lost = self._wide if _region.wide else self._narrow
        amplitude = parts.norm(dim=-1) * unit + lost
        if func in PRODUCTS or func in SUMS:
            of_sizes: Tensor = func(*(x.abs() if isinstance(x, Tensor) else x for x in args), **kwargs)
            amplitude += of_sizes * self._accumulator * math.sqrt(_terms(func, amplitude, args))
        of_parts: Tensor = amplitude.unsqueeze(-1).expand(parts.shape)
        return of_parts.masked_fill(parts == 0, 0.0)

    def _most_of_two(
        self, func: Any, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[Tensor, Tensor | None]:
        """The same for sums of products of two factors, such as convolutions: calls with other values give the sums."""
        unit, lost = self._wide if _region.wide else self._narrow

        def of(change: Callable[[Tensor], Tensor]) -> Tensor:
            found = func(*(change(x) if _is_real(x) else x for x in args), **kwargs)
            part: Tensor = found[place] if isinstance(found, tuple | list) else found
            return part

        terms, sums, partial = of(torch.ones_like), of(torch.abs), of(torch.square).sqrt_()
        factors = [x.reshape(1, -1) for x in args if _is_real(x) and x.numel()]
        repeated = all(repeats(x, self._accumulator) is not None for x in factors)
        growth = torch.maximum(terms.sqrt(), terms / 2) if repeated else terms.sqrt()
        amplitude = result.abs() * unit + (lost + self._wide[1] * terms) + self._accumulator * growth * sums
        amplitude.add_(partial, alpha=unit)
        of_one_sign = (sums + result.abs()) / 2
        overflows = of_one_sign > self._largest_sum
        overflows |= of_one_sign.minimum(partial * PARTS) > (self._largest_sum if _region.wide else self._largest)
        return amplitude.masked_fill_(result == 0, 0.0), overflows if bool(overflows.any()) else None


def _is_real(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _is_part(value: Any, product: Tensor) -> bool:
    """Whether this is a view of the product: the product is kept, so that nothing else has its memory."""
    return _is_real(value) and value.untyped_storage().data_ptr() == product.untyped_storage().data_ptr()


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


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


def owned(func: Any, result: Tensor) -> Tensor:
    """The result; a copy if it may share memory with an argument, so that the argument does not change."""
    return result.clone() if kind(func).returns_a_part else result


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


def underflow(dtype: torch.dtype) -> float:
    """What a result may lose below the smallest normal number of `dtype`.

    That number itself, because vector and matrix units flush smaller ones to zero. For float16, whose subnormals they
    keep and networks use: the distance of two subnormals.
    """
    facts, flushed = torch.finfo(dtype), torch.finfo(torch.float32).tiny
    return max(facts.tiny * facts.eps, min(facts.tiny, flushed))
