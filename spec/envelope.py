"""How far rounding alone can move a tensor from its exact value: statistics of many runs under `spec.rounding`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from spec.parts import parts_of
from spec.roundoff import UNIT_ROUNDOFF
from spec.runs import RUNS, rounded_runs

#: How many standard deviations below the largest number of the dtype an element must be to be decided: as many as its
#: elementwise allowance has.
CLIFF = 8

#: Relative deviation from which an element is looked at as a product of noise, and how many of its deviations in the
#: logarithm its allowance then has: the elementwise allowance has `CLIFF` of the others. In a tensor whose elements are
#: products of noise, at least this share of them errs by a factor of e. Of the tensors of attention whose sums cancel
#: here and there, at most 1 in 60 does.
FACTOR_FROM, FACTOR, AT_LEAST = 0.25, 8, 1 / 20

#: Integers that are rounded real numbers, where others are names of elements: these may be near the right one.
NUMBERS = (torch.int8, torch.uint8)
#: The most by which rounding may change such a number for it to be asked. It changes two of 4 bits in one by 16.
MOST = 8

#: How many times its noise a gradient may have that is noise alone, under a derived contract.
NOISE = 4

#: How many times `largest` and `rms` are allowed: the limits of `harness.judging.compare`.
LARGEST, RMS = 2.0, 1.5

#: Below so many independent errors, sizes of a whole tensor have a larger limit; not where they are at most `SEVERAL`
#: roundings of the result, which is bounded. Sorting more elements takes too long.
FEW_INDEPENDENT, SEVERAL, _FEW_ENOUGH_TO_SORT = 4, 4, 2**12

#: Below it a sum of squares may have lost some of them to underflow.
_LEAST_SQUARE = torch.finfo(torch.float64).tiny / torch.finfo(torch.float64).eps

#: Elements of all runs that are compared at a time.
_AT_ONCE = 2**17


@dataclass(frozen=True)
class Block:
    """A named part of a tensor: elements `begin` to `begin + length` of dimension `dim`, and its own largest gain.

    One gate of three may hold a hundredth of a gradient's power. In the whole tensor, a scale error of this gate is
    diluted.
    """

    name: str
    dim: int
    begin: int
    length: int
    gain: float = 0.0

    def narrowed(self, tensor: Tensor) -> Tensor:
        """This part of a tensor."""
        return tensor.narrow(self.dim, self.begin, self.length)

    def within(self, runs: Tensor, part: Any) -> Tensor:
        """This part of a tensor in each run, the first dimension, of which `runs` has only `part`: see `parts_of`."""
        begin, end = self.begin, self.begin + self.length
        if part is not ... and self.dim == 0:
            begin, end = (min(max(bound - part.start, 0), runs.shape[1]) for bound in (begin, end))
        return runs.narrow(self.dim + 1, begin, end - begin)

    def of(self, tensor: Tensor) -> Tensor:
        """This part of a tensor, flat."""
        return self.narrowed(tensor).flatten()


@dataclass(frozen=True, eq=False)
class Envelope:
    """How far rounding alone can move one tensor from `exact` (float64).

    `sigma` is the elementwise standard deviation of the error. `largest`, `rms` and `gain` are the largest values in
    any run of max|e|, of the root mean square of e, and of |<e, y>| / <y, y>. Where few elements err independently, the
    first two are larger: see `_of_few`. All are taken over `usable`: the elements where `exact` is representable in
    `dtype` and every run was finite. `undecided` are others where rounding alone decides between a finite number and
    one that is not, as shown by the runs or by `CLIFF` sigma, or between two steps (`spec.steps`): nothing is asked.

    Of a tensor of integers or truth values, `exact` is in its own dtype, `usable` are the elements that no rounding
    changes (see `spec.discrete`), `undecided` the others, and all else is 0. In one of `NUMBERS`, `usable` are also the
    elements that rounding changes by `MOST` or less, and `sigma` is by how much.
    """

    dtype: torch.dtype
    exact: Tensor
    usable: Tensor
    sigma: Tensor
    largest: float
    rms: float
    gain: float
    undecided: Tensor
    blocks: tuple[Block, ...] = ()

    @property
    def discrete(self) -> bool:
        """Whether the tensor has integers or truth values, which are compared exactly."""
        return not self.dtype.is_floating_point


def everywhere(envelope: Envelope) -> Tensor:
    """`sigma` at each element, float64: 0 where nothing is asked."""
    return torch.zeros(envelope.exact.shape, dtype=torch.float64).masked_scatter_(envelope.usable, envelope.sigma)


def gain(error: Tensor, exact: Tensor) -> float:
    """|<e, y>| / <y, y>: how much of an error is a change of scale. 0 if y is 0. Both are flat and of one length."""
    power = float(torch.dot(exact, exact))
    return abs(float(torch.dot(error, exact))) / power if power > 0 else 0.0


def envelopes(
    evaluate: Callable[..., tuple[Tensor, ...]],
    eager: tuple[Tensor, ...],
    dtype: torch.dtype,
    seed: int = 0,
    blocks: Sequence[Sequence[Block]] | None = None,
    exact: tuple[Tensor, ...] | None = None,
    honest: Sequence[tuple[Tensor, ...]] = (),
    inputs: Sequence[Tensor] = (),
    dtypes: Sequence[torch.dtype] = (),
) -> tuple[Envelope, ...]:
    """An envelope for each tensor that `evaluate` returns, around `exact` or, without it, around the float64 result.

    `evaluate(*inputs)` computes in float64, from inputs that are exact in `dtype`. If all its inputs are passed to it,
    many runs are made at once, which is faster; a closure without `inputs` is run one by one. `eager` is the result of
    torch in `dtype` itself; it counts as one more run. `blocks` are the named parts of each tensor.

    `honest` are further results that an implementation may return; they count as runs too. `dtypes` are those of the
    tensors, where they are not `dtype`. A tensor that is not of real numbers has an envelope of what all runs agree on.
    """
    if exact is None:
        exact = tuple(tensor.detach() for tensor in evaluate(*inputs))
    runs = rounded_runs(evaluate, inputs, dtype, seed)
    runs += [list(results) for results in honest]
    runs.append([t.detach().cpu().double() if t.is_floating_point() else t.detach().cpu() for t in eager])
    parts = blocks or [()] * len(exact)
    own = dtypes or [dtype] * len(exact)
    return tuple(
        _envelope(own[k], y, [run[k] for run in runs], parts[k])
        if y.is_floating_point()
        else discrete_envelope(y, [run[k] for run in runs])
        for k, y in enumerate(exact)
    )


def widened_noise(envelope: Envelope) -> Envelope:
    """The envelope of a gradient of a derived contract; of one that is noise alone, `NOISE` times as wide.

    Where the exact gradient is 0 but for what cancels, the noise of one formula says little of another one's.
    """
    if envelope.discrete or envelope.rms == 0:
        return envelope
    size = math.sqrt(float(chosen(envelope.exact, envelope.usable).square().mean()))
    if size > envelope.rms:
        return envelope
    wider = {name: NOISE * getattr(envelope, name) for name in ("sigma", "largest", "rms")}
    return replace(envelope, **wider)


def discrete_envelope(exact: Tensor, runs: Sequence[Tensor]) -> Envelope:
    """The envelope of a tensor of integers or truth values: decided is what all runs agree on.

    Of `NUMBERS` also what no run changes by more than `MOST`.
    """
    if exact.dtype in NUMBERS:
        moved = torch.zeros(exact.shape, dtype=torch.int16)
        for run in runs:
            moved = torch.maximum(moved, (run.to(torch.int16) - exact.to(torch.int16)).abs())
        usable, sigma = moved <= MOST, moved.double()
    else:
        usable, sigma = torch.ones(exact.shape, dtype=torch.bool), torch.zeros(exact.shape, dtype=torch.float64)
        for run in runs:
            usable &= run == exact
    return Envelope(exact.dtype, exact, usable, chosen(sigma, usable), 0.0, 0.0, 0.0, ~usable)


def compared(exact: Tensor, dtype: torch.dtype, runs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """(usable, undecided) of an envelope: see `Envelope`."""
    representable = exact.isfinite() & (exact.abs() <= torch.finfo(dtype).max)
    usable, never = representable.clone(), ~representable
    for run in runs:
        if not math.isfinite(float(run.sum())):  # far cheaper than a look at each element
            usable &= run.isfinite()
        if bool(never.any()):
            never &= ~run.isfinite()
    return usable, ~(usable | never)


def chosen(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` holds, flat; a view without a copy if it holds everywhere, the usual case."""
    return tensor.reshape(-1) if bool(mask.all()) else tensor[mask]


def _deviation(mean_square: Tensor, exact: Tensor, runs: Sequence[Tensor], usable: Tensor) -> Tensor:
    """The root of the mean square of the runs' errors, also where the squares underflow float64."""
    deviation = mean_square.sqrt()
    lost = usable & (mean_square < _LEAST_SQUARE)
    if bool(lost.any()):
        errors = torch.stack([run[lost] for run in runs]).sub_(exact[lost])
        largest = errors.abs().amax(0).clamp_(min=torch.finfo(torch.float64).tiny)
        deviation[lost] = errors.div_(largest).square_().mean(0).sqrt_().mul_(largest)
    return deviation


def _independent(y: Tensor, deviation: Tensor) -> float:
    """As how many independent errors of one size the root mean square of all behaves; both are flat.

    Elements of equal value have equal errors. With W the sum of the squared deviations of all elements of one value,
    it is (sum W)^2 / sum W^2 over the values.
    """
    if y.numel() > _FEW_ENOUGH_TO_SORT and not bool((y == y[0]).all()):
        return float(y.numel())
    squares = (deviation / deviation.max().clamp(min=torch.finfo(torch.float64).tiny)).square_()
    values, place = torch.unique(y, return_inverse=True)
    of_values = torch.zeros_like(values).index_add_(0, place, squares)
    power = float(of_values.square().sum())
    return float(of_values.sum()) ** 2 / power if power > 0 else float(y.numel())


def _of_few(of_runs: Tensor, times: float) -> float:
    """The largest of a size in all runs, of few independent errors.

    More, where `times` it is less than `CLIFF` deviations above the mean. Of thousands of errors, the size is nearly
    the same in each run. Of a single one, 1.5 times the largest of 16 runs is some 3 deviations.
    """
    rounded = of_runs[:RUNS]
    return max(float(of_runs.max()), float(rounded.mean() + CLIFF * rounded.std(correction=0)) / times)


def _of_factors(deviation: Tensor, exact: Tensor, runs: Sequence[Tensor], usable: Tensor) -> Tensor:
    """The deviation of a half type, larger in a tensor whose elements rounding multiplies rather than adds to.

    The exponential of a score of 500 in bfloat16 is off by a factor of e or more: its error is that of a lognormal
    variable, of which few runs show neither the tail nor the deviation. Such elements have a deviation of the size of
    the element itself, and the sign of the exact value in every run, as no sum that cancels has. With s, the root mean
    square of log(run / exact), the element may be e^(FACTOR s) times what it should be. Beside them, a sum of several
    such terms may have any sign: the largest error of a run is a deviation there.
    """
    noisy = usable & (deviation > FACTOR_FROM * exact.abs()) & (exact != 0)
    if int(noisy.sum()) < AT_LEAST * int(usable.sum()):
        return deviation
    y, of_runs = exact[noisy], torch.stack([run[noisy] for run in runs])
    largest = (of_runs - y).abs_().amax(0)
    ratios = of_runs.div_(y)
    s = ratios.clamp(min=torch.finfo(torch.float64).tiny).log_().square_().mean(0).sqrt_()
    multiplied = (ratios > 0).all(0)
    if int((multiplied & (s > 1)).sum()) < AT_LEAST * int(usable.sum()):
        return deviation
    of_factor = y.abs().mul_(torch.expm1(FACTOR * s)).div_(CLIFF)
    found = deviation.clone()
    found[noisy] = torch.maximum(deviation[noisy], torch.where(multiplied, of_factor, largest))
    return found


def _envelope(
    dtype: torch.dtype, exact: Tensor, runs: list[Tensor], blocks: Sequence[Block], near: Tensor | None = None
) -> Envelope:
    """The envelope; elements that `near` masks are undecided."""
    usable, undecided = compared(exact, dtype, runs)
    if near is not None:
        usable, undecided = usable & ~near, undecided | near
    y = chosen(exact, usable)
    if y.numel() == 0:
        return Envelope(dtype, exact, usable, torch.zeros_like(y), 0.0, 0.0, 0.0, undecided)
    everything = y.numel() == exact.numel()
    known = exact if everything else exact.masked_fill(~usable, 0.0)
    powers = [float(torch.dot(part, part)) for part in (y, *(block.of(known) for block in blocks))]
    mean_square, sigma, sizes = torch.zeros_like(exact), torch.zeros_like(exact), torch.zeros(len(runs), dtype=y.dtype)
    squares, along_y = (torch.zeros(len(runs), n, dtype=torch.float64) for n in (1, len(powers)))
    # Part by part, all runs of one part together, so that they stay in the cache.
    for part in parts_of(exact, _AT_ONCE // len(runs)):
        errors = torch.stack([run[part] for run in runs]).sub_(exact[part])
        if not everything:
            errors.masked_fill_(~usable[part], 0.0)
        least, most = torch.aminmax(errors.reshape(len(runs), -1), dim=1)
        sizes = torch.maximum(sizes, torch.maximum(-least, most))
        along = errors * known[part]
        along_y[:, 0] += along.reshape(len(runs), -1).sum(1)
        for k, block in enumerate(blocks, start=1):
            along_y[:, k] += block.within(along, part).reshape(len(runs), -1).sum(1)
        # sigma comes from the RUNS rounded runs. The eager run (the last) counts in the extremes only: it is a single
        # result and not drawn from their distribution. An honest result counts in sigma as if it were the only run with
        # an error, sqrt(e^2 / RUNS), computed without the square because e^2 may underflow to 0.
        if len(runs) > RUNS + 1:
            sigma[part] = errors[RUNS:-1].abs().amax(0).div_(math.sqrt(RUNS))
        of_runs = errors.square_().reshape(len(runs), -1)
        squares[:, 0] += of_runs.sum(1)
        mean_square[part] = errors[:RUNS].mean(0)
    mean_squares = squares[:, 0] / y.numel()
    largest, rms = float(sizes.max()), math.sqrt(float(mean_squares.max()))
    whole, *of_blocks = (
        float(sums.abs().max()) / power if power > 0 else 0.0 for sums, power in zip(along_y.T, powers, strict=True)
    )
    found = tuple(replace(block, gain=seen) for block, seen in zip(blocks, of_blocks, strict=True))
    deviation = torch.maximum(_deviation(mean_square, exact, runs[:RUNS], usable), sigma)
    if dtype in (torch.float16, torch.bfloat16):
        deviation = _of_factors(deviation, exact, runs[:RUNS], usable)
    of_result = SEVERAL * UNIT_ROUNDOFF[dtype] * math.sqrt(powers[0] / y.numel())
    if rms > of_result and _independent(y, chosen(deviation, usable)) < FEW_INDEPENDENT:
        largest, rms = _of_few(sizes, LARGEST), _of_few(mean_squares.sqrt(), RMS)
    if near is None:
        # By chance no run may have overflowed where one more would.
        beyond = usable & (exact.abs() + CLIFF * deviation > torch.finfo(dtype).max)
        if bool(beyond.any()):
            return _envelope(dtype, exact, runs, blocks, near=beyond)
    return Envelope(dtype, exact, usable, chosen(deviation, usable), largest, rms, whole, undecided, found)
