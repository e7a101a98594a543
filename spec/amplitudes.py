"""The largest error of each operation of an evaluation, kept for later runs of the same evaluation."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


class UnlikeOneRun(Exception):
    """Evaluated for many runs at once, the sequence of operations is not that of one run."""


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
