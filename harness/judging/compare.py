"""Compare one tensor with its envelope. Only this module decides how much error is too much.

Let e be the error, y the exact value, N its elements, E the extremes of the envelope and u the unit roundoff of the
dtype. All four bounds must hold:

    largest     max|e|        <=  2 (E_max + u max|y|) + f
    rms         RMS(e)        <=  1.5 (E_rms + u RMS(y) / sqrt(3)) + f
    elementwise |e_i|         <=  8 max(sigma_i, median(sigma)/2) + 2 u |y_i| + f
    gain        |<e,y>/<y,y>| <=  3 E_gain + 2 u / sqrt(N) + u / 2 + f / RMS(y)       if 3 E_gain < 1

E_max and E_rms are larger where fewer than four elements err independently, as where all are equal (`spec.envelope`).

The last one shows a scale error of one percent that no single element shows. It is also applied to each named block,
for example the rows of one gate in the weights: in the whole tensor, an error of one block is diluted. u/2 is the bias
that the last operation in the dtype may have; no number of elements averages it away. f is `spec.roundoff.underflow`.
Where rounding alone may change the scale by its whole, as where y cancels to 0, the gain is not asked.

Where y is not finite, a candidate's output must be the same NaN or infinity, and its gradient must not be finite. If an
output is not used, a gradient may have any value there: an implementation may or may not compute 0 * NaN. Where y is
finite, the candidate's value must be finite. Nothing is asked where rounding alone decides which of the two it is.

A tensor of integers or truth values has no allowance: each element that rounding does not decide must be the same. A
number of 8 bits has one where rounding changes it a little.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spec.envelope import LARGEST, RMS, Block, Envelope, chosen, everywhere, gain
from spec.roundoff import UNIT_ROUNDOFF, underflow


@dataclass(frozen=True)
class Statistic:
    """One of the four measures: the value seen and the value allowed."""

    name: str
    seen: float
    allowed: float

    @property
    def used(self) -> float:
        """The part of the allowance that was used; above 1 the tensor is wrong."""
        if self.allowed > 0:
            return self.seen / self.allowed
        return 0.0 if self.seen == 0 else math.inf

    @property
    def values(self) -> str:
        """`0.0012, allowed 0.0011`, with as many digits as show which one is larger."""
        for digits in range(3, 18):
            seen, allowed = f"{self.seen:.{digits}g}", f"{self.allowed:.{digits}g}"
            if seen != allowed or self.seen == self.allowed:
                break
        return f"{seen}, allowed {allowed}"


@dataclass(frozen=True)
class Comparison:
    """A tensor compared with its envelope: the four statistics, which elements are wrong, the place of the worst."""

    statistics: tuple[Statistic, ...]
    error: Tensor
    wrong: Tensor
    place: tuple[int, ...]
    special: str = ""

    @property
    def worst(self) -> Statistic:
        return max(self.statistics, key=lambda statistic: statistic.used)

    @property
    def holds(self) -> bool:
        return not self.special and self.worst.used <= 1.0

    def figures(self, tensor: str, scenario: str) -> dict[str, Any]:
        """The worst statistic as the report has it: `used` is the error in units of the allowance."""
        worst = self.worst
        return {
            "used": round(worst.used, 4),
            "tensor": tensor,
            "statistic": worst.name,
            "seen": worst.seen,
            "allowed": worst.allowed,
            "scenario": scenario,
        }


#: The rules for elements whose exact value is not finite: see the module's docstring.
SAME, NOT_FINITE, ANYTHING = "same", "not finite", "anything"


@dataclass(frozen=True)
class _Allowance:
    """The limits of each statistic, which follow from the envelope alone. Flat tensors, of the usable elements."""

    everything: bool
    y: Tensor
    elementwise: Tensor
    largest: float
    rms: float
    gain: float
    #: For each named block with elements: the block, the exact values in it, and the limit of its gain.
    blocks: tuple[tuple[Block, Tensor, float], ...]


@lru_cache(maxsize=128)
def _allowance(envelope: Envelope) -> _Allowance:
    exact, usable = envelope.exact, envelope.usable
    unit, floor = UNIT_ROUNDOFF[envelope.dtype], underflow(envelope.dtype)
    y = chosen(exact, usable)
    everything = y.numel() == exact.numel()
    if y.numel() == 0:
        return _Allowance(everything, y, y, 0.0, 0.0, 0.0, ())
    size = y.abs()
    sigma = torch.maximum(envelope.sigma, envelope.sigma.median() / 2)
    known = exact if everything else torch.where(usable, exact, 0.0)
    parts = ((block, block.of(known)) for block in envelope.blocks)
    return _Allowance(
        everything,
        y,
        elementwise=8 * sigma + 2 * unit * size + floor,
        largest=LARGEST * (envelope.largest + unit * float(size.max())) + floor,
        rms=RMS * (envelope.rms + unit * _rms(y) / math.sqrt(3)) + floor,
        gain=_gain_allowed(envelope.gain, y, unit, floor),
        blocks=tuple(
            (block, part, _gain_allowed(block.gain, part, unit, floor)) for block, part in parts if part.numel() > 0
        ),
    )


def compare(candidate: Tensor, envelope: Envelope, specials: str = SAME) -> Comparison:
    """Compare `candidate`, of the envelope's shape, with the envelope."""
    if envelope.discrete:
        return _compare_exactly(candidate.detach().cpu(), envelope)
    got = candidate.detach().cpu().to(torch.float64)
    allowed = _allowance(envelope)
    if allowed.everything and bool(got.isfinite().all()):  # the usual case, and a cheap test
        special, bad = "", None
        error_everywhere = got - envelope.exact
        error = error_everywhere.reshape(-1)
    else:
        special, bad = _specials(got, envelope, specials)
        error_everywhere = torch.where(envelope.usable, got - envelope.exact, 0.0).nan_to_num(nan=math.inf)
        error = chosen(error_everywhere, envelope.usable)
    if error.numel() == 0:
        wrong = torch.zeros_like(envelope.usable) if bad is None else bad
        return Comparison((Statistic("largest", 0.0, 0.0),), error_everywhere, wrong, _first(wrong), special)

    size = error.abs()
    ratio = size / allowed.elementwise
    worst, farthest = int(ratio.argmax()), int(size.argmax())
    finite = math.isfinite(float(size[farthest]))
    statistics = (
        Statistic("largest", float(size[farthest]), allowed.largest),
        Statistic("rms", _rms(error), allowed.rms),
        Statistic("elementwise", float(size[worst]), float(allowed.elementwise[worst])),
        Statistic("gain", gain(error, allowed.y) if finite else math.inf, allowed.gain),
        *(
            Statistic(f"gain of {block.name}", gain(block.of(error_everywhere), y) if finite else math.inf, most)
            for block, y, most in allowed.blocks
        ),
    )
    over = size > allowed.elementwise
    if bad is None:
        wrong = over.reshape(envelope.exact.shape)
    else:
        wrong = bad.clone()
        wrong[envelope.usable] |= over
    largest, elementwise = statistics[0], statistics[2]
    at = worst if elementwise.used >= largest.used else farthest
    place = _first(bad) if special and bad is not None else _place(at, envelope.usable, allowed.everything)
    return Comparison(statistics, error_everywhere, wrong, place, special)


def _compare_exactly(got: Tensor, envelope: Envelope) -> Comparison:
    """The comparison of a tensor of integers or truth values; elements that rounding decides are not compared.

    A number of 8 bits may differ by what rounding changes, where that is little: see `spec.envelope.NUMBERS`.
    """
    wrong = envelope.usable & (got != envelope.exact)
    far = got.double() - envelope.exact.double()
    if bool(envelope.sigma.any()):
        allowed = everywhere(envelope)
        wrong &= (allowed == 0) | (far.abs() > allowed)
    count = int(wrong.sum())
    special = f"{count} of {wrong.numel()} elements are not exactly what they should be" if count else ""
    error = torch.where(wrong, far, 0.0)
    return Comparison((Statistic("different", float(count), 0.0),), error, wrong, _first(wrong), special)


def shown(value: float) -> str:
    """A number as messages show it; integers and truth values whole."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _place(at: int, usable: Tensor, everything: bool) -> tuple[int, ...]:
    """The index of the usable element with that number."""
    if not everything:
        return tuple(usable.nonzero()[at].tolist())
    return tuple(int(index) for index in np.unravel_index(at, usable.shape))


def _first(mask: Tensor) -> tuple[int, ...]:
    places = mask.nonzero()
    return tuple(places[0].tolist()) if len(places) else (0,) * mask.dim()


def _gain_allowed(seen: float, y: Tensor, unit: float, floor: float) -> float:
    if 3 * seen >= 1:
        return math.inf
    return 3 * seen + unit * (2 / math.sqrt(y.numel()) + 0.5) + floor / max(_rms(y), floor)


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _specials(got: Tensor, envelope: Envelope, rule: str) -> tuple[str, Tensor]:
    """What is wrong with NaN and infinities, in words, and a mask of the elements."""
    exact = envelope.exact
    limit = torch.finfo(envelope.dtype).max
    not_finite_here = envelope.usable & ~got.isfinite()
    if bool(not_finite_here.any()):
        return (
            f"{int(not_finite_here.sum())} elements are NaN or infinite where the exact value is finite",
            not_finite_here,
        )
    overflown = (exact.abs() > limit) & ~envelope.undecided  # infinities too
    unlike = overflown & ~(
        (got.sign() == exact.sign()) & (got.abs() >= limit * (1 - 8 * UNIT_ROUNDOFF[envelope.dtype]))
    )
    lost = exact.isnan() & ~got.isnan() & ~envelope.undecided
    if rule != SAME:
        lost = ~exact.isfinite() & got.isfinite() & ~envelope.undecided & (rule == NOT_FINITE)
        unlike = torch.zeros_like(lost)
    if bool(lost.any()):
        was = "not NaN" if rule == SAME else "finite"
        return f"{int(lost.sum())} elements are {was} where the exact value is NaN", lost
    if bool(unlike.any()):
        return f"{int(unlike.sum())} elements are not infinite where the exact value overflows {envelope.dtype}", unlike
    return "", torch.zeros_like(envelope.usable)


def has_evidence(envelope: Envelope) -> bool:
    """Whether wrong answers would be rejected: zeros, the right answer times 1.05, and its rows rotated by one.

    Of integers or truth values: zeros, the next integer or the other truth value, and the rotated rows; and rounding
    must not decide most of the elements. Of numbers that rounding changes: those that are 10% larger.
    """
    exact = envelope.exact
    if exact.numel() == 0 or not bool(envelope.usable.any()):
        return False
    if envelope.discrete and 2 * int(envelope.usable.sum()) < exact.numel():
        return False
    wrong_answers = [torch.zeros_like(exact), _near(envelope)]
    rotated = exact.roll(1, 0) if exact.dim() > 0 else exact
    if not torch.equal(rotated, exact):
        wrong_answers.append(rotated)
    return all(
        (not envelope.discrete and _is_far(answer, envelope)) or not compare(answer, envelope).holds
        for answer in wrong_answers
    )


def _near(envelope: Envelope) -> Tensor:
    """A wrong answer that is near the right one."""
    exact = envelope.exact
    if exact.is_floating_point():
        return exact * 1.05
    if exact.dtype == torch.bool:
        return ~exact
    wide = exact.to(torch.int64)
    larger = wide + wide.sign() * (wide.abs() / 10).ceil().to(torch.int64)
    return torch.where(everywhere(envelope) == 0, wide + 1, larger)


def _is_far(answer: Tensor, envelope: Envelope) -> bool:
    """Whether the rms bound alone rejects an answer that is finite where it should be. It is fast to compute."""
    y = chosen(envelope.exact, envelope.usable)
    seen = _rms(chosen(answer, envelope.usable) - y)
    return seen > _allowance(envelope).rms
