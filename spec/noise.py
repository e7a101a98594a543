"""Random errors that are functions of the values they are added to.

An operation rounds equal operands equally, and so errs alike in all rows of a batch that are equal. A generator, which
errs anew in each of them, would let a sum over such rows average away what no implementation can. So the random number
of an element is a hash: of the bits of its own value, of the operation's number, and of the run. A value that needs no
rounding, as exp(0), has no error: what all that are equal to it had in common would be none of an implementation's.

But what is equal in the reference need not be equal on every way to the result, and errors that are alike may cancel,
where those of another implementation do not. So in every other run, those with an odd seed, the element's place is
hashed too, and what is exact errs as all else.

Source of the hash: D. Stafford's thirteenth mixer (2011), the end of SplitMix64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_Bits = NDArray[np.uint64]
_Numbers = NDArray[np.float64]

_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)
#: From a signed integer of 64 bits to [-1, 1).
_SCALE = 2.0**-63
#: Elements that are worked on at a time: with all that is computed of them, they fit a processor's cache.
_PART = 2**15
#: Elements of all runs up to which a step takes as long for one run as for all of them.
_FEW = 2**12


def _mixed(bits: _Bits) -> _Bits:
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        bits = (bits ^ (bits >> shift)) * factor
    return bits ^ (bits >> _SHIFTS[2])


_PLACES = _mixed(np.arange(_PART, dtype=np.uint64))


class Noise:
    """The errors of `runs` runs, with seeds from `seed` on."""

    def __init__(self, seed: int, runs: int = 1) -> None:
        seeds = np.arange(seed, seed + runs, dtype=np.uint64)
        self._runs = runs
        self._memory = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
        self._seeds = _mixed(seeds)
        #: All bits of runs in which equal elements err apart.
        self._apart = np.uint64(0) - (seeds & np.uint64(1)).reshape(-1, 1)

    def add(
        self,
        values: Tensor,
        amplitude: Tensor,
        common: float,
        number: int,
        exact: Tensor | None = None,
        apart: bool = False,
    ) -> None:
        """Add to `values`, float64 on the CPU, `amplitude` xi + `common` beta times themselves, in place.

        xi, in [-1, 1), is the same for equal elements of a run, and beta for all of them; both are others for another
        `number`. With `apart`, and in runs of an odd seed, xi is another one for each element. The first dimension has
        the runs' parts one after another, all of one length, and so has that of `amplitude` and of `exact`, a mask of
        elements that have no xi in the other runs, unless they are those of one run.
        """
        if values.numel() == 0:
            return
        if not values.is_contiguous():
            dense = values.contiguous()
            self.add(dense, amplitude, common, number, exact, apart)
            values.copy_(dense)
            return
        own = values.numpy().reshape(self._runs, -1)
        most = amplitude.contiguous().numpy().reshape(-1, own.shape[1])
        # With the size, or beta would be the same sixteen numbers for a certain operation in all that is ever judged.
        keys = _mixed(self._seeds + np.uint64(number << 40 | own.shape[1])).reshape(-1, 1)
        betas = common * _signed(_mixed(keys))
        masks = ~np.zeros_like(self._apart) if apart else self._apart
        if exact is not None:
            none = exact.contiguous().numpy().reshape(-1, own.shape[1])
            most = np.where(none & (masks == 0), 0.0, most)
        few = own.size <= _FEW
        with np.errstate(all="ignore"):
            for runs in (slice(None),) if few or self._runs == 1 else (slice(0, None, 2), slice(1, None, 2)):
                of_runs = most[runs] if len(most) > 1 else most
                self._add(own[runs], of_runs, keys[runs], betas[runs], masks[runs])

    def _add(self, own: _Numbers, most: _Numbers, keys: _Bits, betas: _Numbers, masks: _Bits) -> None:
        """That for some runs, one in each row, a part of them at a time."""
        width = max(_PART // len(own), 1)
        for begin in range(0, own.shape[1], width):
            y = own[:, begin : begin + width]
            bits, free = (scratch[: y.size].reshape(y.shape) for scratch in self._scratch(y.size))
            np.bitwise_xor(y.view(np.uint64), keys, out=bits)
            if masks.any():
                places = _PLACES[: y.shape[1]] + np.uint64(begin)
                np.bitwise_xor(bits, places if masks.all() else places & masks, out=bits)
            _err(y, most[:, begin : begin + width], bits, betas, free)

    def _scratch(self, size: int) -> tuple[_Bits, _Bits]:
        """Memory for that many elements, twice: the same each time, so that it stays in the cache."""
        if len(self._memory[0]) < size:
            self._memory = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint64)
        return self._memory


def _err(y: _Numbers, amplitude: _Numbers, bits: _Bits, beta: _Numbers, free: _Bits) -> None:
    """Add the errors to y; `bits` is what is to be hashed, `free` memory of its size."""
    # One round less than `_mixed` has: the keys are mixed already, and only the upper bits are looked at.
    np.multiply(bits, _FACTORS[0], out=bits)
    np.right_shift(bits, _HALF, out=free)
    np.bitwise_xor(bits, free, out=bits)
    np.multiply(bits, _FACTORS[1], out=bits)
    error, common = free.view(np.float64), bits.view(np.float64)
    np.copyto(error, bits.view(np.int64))
    np.multiply(error, _SCALE, out=error)
    np.multiply(error, amplitude, out=error)
    np.multiply(y, beta, out=common)
    np.add(error, common, out=error)
    np.add(y, error, out=y)


def _signed(bits: _Bits) -> _Numbers:
    """Numbers in [-1, 1), evenly."""
    numbers: _Numbers = np.multiply(bits.view(np.int64), _SCALE)
    return numbers
