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
exp(x) errs by u_acc |x| exp(x) more, and so does what a sigmoid has of it: u_acc |x| s (1 - s). erf(x) errs by
3 u_acc |erf(x)| more, as that of PyTorch's vectorised gelu does.

A result beyond the largest number of its dtype is infinite. Terms of a product or a sum may add up to a finite number
although their partial sums, in some order, overflow the accumulator. The largest partial sum of any order is that of
all terms of one sign, (sum |t| + |sum t|) / 2. Where it is beyond the accumulator's range, the result is infinite in
half of the runs. Parts of a product that are rounded to the dtype may overflow its range; there the largest partial sum
is taken to be at most `PARTS` sqrt(A^2 @ B^2), because few sums of terms of random sign exceed that.

Operations that only move, select or compare data are exact. `spec.operations` lists them; every other one rounds, but
for sums and products of what was rounded to whole numbers: see `spec.whole`. Both parts of a complex number err as a
real number of its size.

In a block `with wide(...)`, u_acc replaces u: so a contract states which parts the half types compute in float32. What
is added in a block `with one_sum()` may be one sum of all the terms. In a block `with apart(x)`, equal elements may err
differently where those of x differ. `spec.blocks` has these functions, `spec.largest_errors` the formulas above.

Sources: D. S. Parker, "Monte Carlo arithmetic" (1997); N. J. Higham and T. Mary, "A new approach to probabilistic
rounding error analysis" (2019), for sqrt(K) in place of K.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from spec.amplitudes import Amplitude, Amplitudes, UnlikeOneRun, dim_of_runs, parted
from spec.blocks import apart, region, within
from spec.decomposing import functional, steps
from spec.kinds import kind
from spec.largest_errors import LargestErrors, is_real
from spec.modes import EagerMode
from spec.noise import Noise
from spec.operations import COMPUTED, MOVES, OF_TWO, OVER_ALL, PRODUCTS, SCATTERS, SUMS
from spec.picks import PICKS, Picks
from spec.whole import WholeNumbers

#: How far an element of one run may exceed the amplitude of another run, relative to it.
_FOLDED = 2.0**-6
#: Of elements smaller than this many roundings of the largest one, but at most a quarter of it, nothing is known: what
#: cancels to 0 is another rounding error in each run.
_CANCELLED, _SMALL = 256, 0.25

_aten = torch.ops.aten
_ELU_BACKWARD, _TO_COPY = _aten.elu_backward.default, _aten._to_copy.default
_SCATTER_REDUCE = _aten.scatter_reduce.two
_SOFTMAX = frozenset({_aten._softmax.default, _aten._safe_softmax.default})
_SOFTMAX_BACKWARD = _aten._softmax_backward_data.default
#: Largest error of an exponent with which a softmax is computed again: beyond, its weights are not what they were.
_AGAIN = 2.0**-6
_MULTIPLY = PRODUCTS | OF_TWO
_LARGEST_OF_ALL = torch.finfo(torch.float64).max


def _is_extreme(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether it reduces by index to the largest or smallest: no rounding. Backward looks for equal elements."""
    return func is _SCATTER_REDUCE and kwargs.get("reduce", args[4] if len(args) > 4 else "") in ("amax", "amin")


def knows(func: Any) -> bool:
    """Whether the model knows how an operation rounds: no rounding, a product, a sum, steps, or one of each element."""
    func = functional(func) or func
    listed = MOVES | COMPUTED | PRODUCTS | OF_TWO | OVER_ALL | SUMS | SCATTERS | {_aten._to_copy.default}
    return kind(func).changes_shape or func in listed or steps(func) is not None or torch.Tag.pointwise in func.tags


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
        self._whole = WholeNumbers()
        #: Operations that were rounded so far.
        self.number = 0
        self._dtype, self._errors = dtype, LargestErrors(dtype)
        #: What `of_half` was before each block that this mode is in.
        self._before: list[bool] = []
        self._noise = Noise(seed, runs)
        #: The runs in which a sum that may overflow does.
        self._overflowing = [run for run in range(runs) if (seed + run) & 4]
        #: The runs that save narrow results, and by its address each wide tensor with its narrow one.
        self._saving = torch.tensor([bool((seed + run) & 8) for run in range(runs)])
        self._narrowed: dict[int, tuple[Tensor, Tensor]] = {}
        #: By its address each softmax with what backward may have in its place.
        self._again: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> Self:
        self._before.append(region.of_half)
        region.of_half = self._errors.is_half
        return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        region.of_half = self._before.pop()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs, own_kind = kwargs or {}, kind(func)
        if own_kind.changes_shape:
            return func(*args, **kwargs)
        if own_kind.writes and is_real(args[0]):
            if own_kind.instead is not None:
                values = self.__torch_dispatch__(own_kind.instead, types, args, kwargs)
                self._whole.written(args[0], values)
                return args[0].copy_(values)
            raise TypeError(f"{func} works in place, so its result cannot be rounded: a reference must not use it")
        if func is _ELU_BACKWARD and not args[4]:
            return self._slope_of_elu(func, *args)
        made_of = own_kind.made_of
        if made_of is not None and own_kind.returns_a_part:  # a view, such as the real part of complex numbers
            with self:
                return made_of(*args, **kwargs)
        if (self._narrowed or self._again) and region.any_order:
            # Faster than tree_map_only for all arguments, which most of the time has nothing to do.
            args = tuple(self._saved(arg) if isinstance(arg, Tensor) else self._all_saved(arg) for arg in args)
        if made_of is not None:
            result = self._composed(made_of, args, kwargs)
            if func is _SOFTMAX_BACKWARD and self._again and region.any_order:
                return self._with_product(result, *args[:3])
            if func in _SOFTMAX and region.again and not region.any_order and result.numel():
                self._again[result.data_ptr()] = result, self._of_logsumexp(result, args[0], args[1])
            return result
        if self._picks is not None and func in PICKS:
            return self._picks.of(func, args, kwargs, self._errors.accumulator)
        result = func(*args, **kwargs)
        if region.awaited:
            region.beside = result
        if region.narrows and is_real(result):
            own = self._rounded(func, result, args, kwargs)
            self._narrowed[args[0].data_ptr()] = args[0], own
            return own
        if own_kind.moves or (func is _TO_COPY and result.dtype == torch.float64) or _is_extreme(func, args, kwargs):
            self._whole.moved(func, args, kwargs, result)
            return result
        if isinstance(result, tuple | list):
            return type(result)(self._rounded(func, part, args, kwargs, k) for k, part in enumerate(result))
        return self._rounded(func, result, args, kwargs)

    def _composed(self, made_of: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What an operation of several steps returns: computed in the accumulator's dtype, and rounded once."""
        with self:
            with within("wide"):
                results = made_of(*args, **kwargs)
            return tree_map_only(Tensor, lambda tensor: tensor * 1 if _is_number(tensor) else tensor, results)

    def _of_logsumexp(self, weights: Tensor, scores: Tensor, dim: int) -> Tensor:
        """The weights of a softmax; in half of the runs, as they are computed again of scores and their logsumexp."""
        with self, within("wide"):
            again = scores * 1
            largest = again.amax(dim, keepdim=True)
            total = largest + (again - largest).exp().sum(dim, keepdim=True).log()
            again = (again - total).exp()
            near = total.abs() * self._errors.accumulator <= _AGAIN
        chosen = near & self._in_saving_runs(weights)
        return torch.where(chosen, again, weights)

    def _with_product(self, usual: Tensor, g: Tensor, weights: Tensor, dim: int) -> Tensor:
        """The gradient of a softmax; in half of the runs, with sum(g y) as a product of what is stored.

        FlashAttention has it as the product of the output, as the dtype stores it, and the output's gradient.
        """
        with self:
            left, right = (tensor.movedim(dim, -1) for tensor in (g, weights))
            product = (left.unsqueeze(-2) @ right.unsqueeze(-1)).squeeze(-1).movedim(-1, dim)
            with within("wide"):
                other = weights * (g - product)
            other = other * 1
        return torch.where(self._in_saving_runs(usual), other, usual)

    def _slope_of_elu(
        self, func: Any, g: Tensor, alpha: float, scale: float, input_scale: float, _: bool, x: Tensor
    ) -> Tensor:
        """The gradient of elu(x) from x; in half of the runs from the result, in the dtype, as where elu is in place.

        Below 0 the slope is exp(x), and also elu(x) + 1: the second has fewer digits where it is small, so the rounding
        of elu(x) may decide its scale.
        """
        made_of = steps(func)
        assert made_of is not None
        result = self._stored(_aten.elu(x, alpha, scale, input_scale))
        of_argument = self._composed(made_of, (g, alpha, scale, input_scale, False, x), {})
        of_result = self._composed(made_of, (g, alpha, scale, input_scale, True, result), {})
        return torch.where(self._in_saving_runs(x), of_result, of_argument)

    def _stored(self, tensor: Tensor) -> Tensor:
        """The tensor, rounded once: in runs of an even seed, elements that are equal as stored err equally.

        Where an operand vanishes in a sum, as a thousandth does in x - 6, an implementation has equal elements. Here
        they still differ, and errors that differ average out in the scale of a gradient.
        """
        near = tensor.to(torch.promote_types(self._dtype, torch.float32) if region.wide else self._dtype).double()
        with self, apart(near):
            error = near * 1 - near
        return torch.where(error.isfinite(), tensor + error, near)

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
                "reference must stay in the dtype that it is given, or promote it, as `spec.blocks.wide` does"
            )
        of_runs = result.dim() > 0 and result.shape[0] == self._runs * self._length
        if self._runs > 1 and self._amplitudes is None and not of_runs:
            raise UnlikeOneRun
        number, self.number = self.number, self.number + 1
        if not of_complex and self._whole.exact(func, args, kwargs, result, self._errors.here[0]):
            return result
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
            amplitude = self._errors.of(func, result, args, kwargs, place, of_complex)
            if self._amplitudes:
                self._amplitudes.hold(number, amplitude, func in _MULTIPLY)
        own = owned(func, result)
        dims = self._amplitudes.dims if self._amplitudes is not None and self._runs > 1 else None
        dim = dims[number] if dims else 0
        if dim:
            if region.beside is not None:
                raise UnlikeOneRun
            own = parted(own, dim, self._runs).contiguous()
        before = own.clone() if amplitude.infinite else None
        most, common = amplitude.most, self._errors.accumulator
        if self._times > 1:
            most, common = most * self._times, common * self._times
        self._noise.add(own, most, common, number, amplitude.exact, region.beside, bool(region.extreme))
        if before is not None:  # what is infinite stays infinite: a mask of -inf has no error
            own = torch.where(before.isfinite(), own, before)
        self._overflow(own, amplitude.overflows)
        own = own.movedim(0, dim).reshape(result.shape) if dim else own
        if is_new:
            self._errors.remember(func, own, args)
        return own

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
        limit = self._errors.largest
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
        unit = self._errors.here[0]
        of_runs = result.reshape(self._runs, *shape)
        # The largest of all runs: what holds of it holds of each.
        sizes = torch.maximum(of_runs.amax(0), -of_runs.amin(0))
        is_admitted = sizes * unit <= known.most * (1 + _FOLDED)
        if bool(is_admitted.all()):
            return True
        return bool((is_admitted | (sizes <= min(_CANCELLED * unit, _SMALL) * sizes.amax())).all())


def _is_number(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def owned(func: Any, result: Tensor) -> Tensor:
    """The result; a copy if it may share memory with an argument, so that the argument does not change."""
    return result.clone() if kind(func).returns_a_part else result
