"""Random errors that are functions of the values they are added to.

An operation rounds equal operands equally, and so errs alike in all rows of a batch that are equal. A generator, which
errs anew in each of them, would let a sum over such rows average away what no implementation can. So the random number
of an element is a hash: of the bits of its own value, of the operation's number, and of the run.

Source of the hash: D. Stafford's thirteenth mixer (2011), the end of SplitMix64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from spec.parts import parts_of

_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)
#: From a signed integer of 64 bits to [-1, 1).
_SCALE = 2.0**-63

_Bits = NDArray[np.uint64]
_Numbers = NDArray[np.float64]


class Noise:
    """The errors of `runs` runs, with seeds from `seed` on."""

    def __init__(self, seed: int, runs: int = 1) -> None:
        self._runs = runs
        self._seeds = _mixed(np.arange(seed, seed + runs, dtype=np.uint64))

    def add(self, values: Tensor, amplitude: Tensor, common: float, number: int) -> None:
        """Add to `values`, float64 on the CPU, `amplitude` xi + `common` beta times themselves, in place.

        xi, in [-1, 1), is the same for equal elements of a run, and beta for all of them; both are others for another
        `number`. The first dimension has the runs' parts one after another, all of one length, and so has that of
        `amplitude`, unless it is that of one run.
        """
        # With the size, or beta would be the same sixteen numbers for a certain operation in all that is ever judged.
        keys = _mixed(self._seeds + np.uint64(number << 40 | values.numel() // self._runs))
        betas = common * _signed(_mixed(keys))
        if self._runs > 1:
            shape = -1, *[1] * (values.dim() - 1)
            each = values.shape[0] // self._runs
            keys, betas = keys.repeat(each).reshape(shape), betas.repeat(each).reshape(shape)
        own, most = np.atleast_1d(values.numpy(), amplitude.numpy())
        with np.errstate(all="ignore"):
            for part in parts_of(values):
                of_run = part if self._runs > 1 else ...
                of_part = part if most.ndim == own.ndim else ...
                _add(own[part], most[of_part], keys[of_run], betas[of_run])


def _add(y: _Numbers, amplitude: _Numbers, key: _Bits, beta: _Numbers) -> None:
    bits = y.view(np.uint64) ^ key
    # One round less than `_mixed` has: the key is mixed already, and only the upper bits are looked at.
    bits *= _FACTORS[0]
    bits ^= bits >> _HALF
    bits *= _FACTORS[1]
    error = _signed(bits)
    np.multiply(error, amplitude, out=error)
    np.add(error, y * beta, out=error)
    np.add(y, error, out=y)


def _signed(bits: _Bits) -> _Numbers:
    """Numbers in [-1, 1), evenly."""
    numbers: _Numbers = np.multiply(bits.view(np.int64), _SCALE)
    return numbers


def _mixed(bits: _Bits) -> _Bits:
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        bits = (bits ^ (bits >> shift)) * factor
    return bits ^ (bits >> _SHIFTS[2])
