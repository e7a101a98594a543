"""Rows of a batch whose inputs are not finite, and what a derived contract leaves open there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from spec.contract import Draw, Operator, TensorArg
from spec.envelope import Envelope

#: What takes the place of an element that is not finite: these multiples of ordinary values. One of another sign, and
#: one beyond all others, change a maximum too.
_OTHERS = (1.0, -1.0, 1024.0, -1024.0)


class Rows:
    """The rows in which some input has an element that `is_odd`; all rows if a tensor that they share has one."""

    def __init__(self, args: Sequence[TensorArg], inputs: Sequence[Tensor], is_odd: Callable[[Tensor], Tensor]) -> None:
        self.found, self.everything = torch.zeros((), dtype=torch.bool), False
        for arg, tensor in zip(args, inputs, strict=True):
            if not tensor.is_floating_point():
                continue
            odd = is_odd(tensor)
            if arg.row_dim is None:
                self.everything = self.everything or bool(odd.any())
            else:
                odd = odd.movedim(arg.row_dim, 0)
                self.found = self.found | odd.reshape(len(odd), math.prod(odd.shape[1:])).any(1)

    def __bool__(self) -> bool:
        return self.everything or bool(self.found.any())

    def of(self, arg: TensorArg, tensor: Tensor) -> Tensor:
        """A mask of the elements of a tensor that belong to these rows; all of one without rows, if there are any."""
        mask = torch.full(tensor.shape, bool(self), dtype=torch.bool)
        if arg.row_dim is not None and not self.everything and self.found.dim():
            mask &= self.found.reshape([-1 if dim == arg.row_dim else 1 for dim in range(tensor.dim())])
        return mask


def of_infinite_rows(operator: Operator, inputs: Sequence[Tensor], found: Sequence[Envelope]) -> list[Envelope]:
    """The envelopes of the outputs of a derived contract, in which NaN that came of infinity is undecided.

    max(x, 0) - x y of binary cross-entropy is infinity less infinity where another formula is 0. NaN of NaN stays.
    """
    if not operator.by_reference:
        return list(found)
    infinite, nan = (Rows(operator.inputs, inputs, is_odd) for is_odd in (torch.isinf, torch.isnan))
    if not infinite:
        return list(found)
    left = []
    for arg, envelope in zip(operator.outputs, found, strict=True):
        where = infinite.of(arg, envelope.exact) & ~nan.of(arg, envelope.exact)
        left.append(
            envelope
            if envelope.discrete
            else replace(envelope, undecided=envelope.undecided | (where & envelope.exact.isnan()))
        )
    return left


def of_masked_elements(operator: Operator, inputs: Sequence[Tensor], found: Sequence[Envelope]) -> list[Envelope]:
    """The envelopes of the outputs of a derived contract, in which NaN is undecided that no finite input would change.

    A causal attention multiplies what comes later with a weight of 0, and NaN times 0 is NaN. A kernel may not read it.
    """
    nan = [not envelope.discrete and bool(envelope.exact.isnan().any()) for envelope in found]
    if not operator.by_reference or not any(nan):
        return list(found)
    with torch.no_grad():
        every = [operator.forward(*_made_finite(inputs, times)) for times in _OTHERS]
    return [
        replace(envelope, undecided=envelope.undecided | (envelope.exact.isnan() & _same(results))) if has else envelope
        for envelope, has, *results in zip(found, nan, *every, strict=True)
    ]


def _same(results: Sequence[Tensor]) -> Tensor:
    """Where all these results are one finite number."""
    first, *others = results
    same = first.isfinite()
    for other in others:
        same = same & (other == first)
    return same


def of_unordered_rows(operator: Operator, inputs: Sequence[Tensor], found: Sequence[Envelope]) -> list[Envelope]:
    """The envelopes of a derived contract that picks elements, in which what depends on the order of NaN is undecided.

    NaN is the largest number for `torch.sort`, and the smallest, or a number of its own, for other sorts.
    """
    if not operator.by_reference or all(arg.is_floating for arg in operator.outputs):
        return list(found)
    nan = Rows(operator.inputs, inputs, torch.isnan)
    if not nan:
        return list(found)
    with torch.no_grad():
        first, last = (
            operator.forward(*(x.nan_to_num(end, math.inf, -math.inf) if x.is_floating_point() else x for x in inputs))
            for end in (math.inf, -math.inf)
        )
    left = []
    for arg, envelope, one, other in zip(operator.outputs, found, first, last, strict=True):
        if envelope.discrete:
            left.append(envelope)
            continue
        same = (one == other) | ~(one.isfinite() | other.isfinite())
        where = nan.of(arg, envelope.exact) & ~same
        sigma = envelope.sigma[~where[envelope.usable]]
        usable, undecided = envelope.usable & ~where, envelope.undecided | where
        left.append(replace(envelope, usable=usable, undecided=undecided, sigma=sigma))
    return left


def _made_finite(inputs: Sequence[Tensor], times: float) -> tuple[Tensor, ...]:
    """The inputs with other values in place of what is not finite, the same for each `times` but for that factor."""
    draw = Draw(0)
    return tuple(
        torch.where(tensor.isfinite(), tensor, times * draw.normal(tuple(tensor.shape)))
        if tensor.is_floating_point()
        else tensor
        for tensor in inputs
    )
