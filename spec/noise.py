"""Random errors that are functions of the values they are added to.

An operation rounds equal operands equally, so it makes the same error in all equal rows of a batch. A generator would
make a new error in each row, and a sum over the rows would average away what no implementation averages away. So the
random number of an element is a hash of the bits of its value, of the operation's number, and of the run. A value that
needs no rounding, such as exp(0), gets no random error: all elements of that value would share it, and no
implementation makes it.

But values that are equal in the reference need not be equal in another computation of the same result. And errors that
are equal may cancel in the reference, where those of an implementation do not. So in every other run, those with an odd
seed, the hash includes the element's place, and exact values get an error as all others do. A value that the reference
computes once may be computed again for each element of another tensor, `beside`. Then the hash includes the element of
that tensor, and exact values get an error in all runs.

Source of the hash: D. Stafford's thirteenth mixer (2011), the last step of SplitMix64.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

_Bits = NDArray[np.uint64]
_Numbers = NDArray[np.float64]

_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF = np.uint64(32)
#: Maps a signed integer of 64 bits to [-1, 1).
_SCALE = 2.0**-63
#: Elements that are processed at a time. With all intermediate results they fit a processor's cache.
_PART = 2**15
#: Operations whose keys are found together.
_AT_ONCE = 2**6
#: Up to this many elements in all runs, a step takes as long for one run as for all of them.
_FEW = 2**12

#: A compiled function that adds the errors of all runs: see `use`.
AddErrors = Callable[..., None]
_compiled: AddErrors | None = None


def use(function: AddErrors | None) -> None:
    """Add errors by this function, which takes pointers: harness/judging/compiled_noise.cpp. None: by numpy."""
    global _compiled  # noqa: PLW0603
    _compiled = function


def _mixed(bits: _Bits) -> _Bits:
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        bits = (bits ^ (bits >> shift)) * factor
    return bits ^ (bits >> _SHIFTS[2])


_PLACES = _mixed(np.arange(_PART, dtype=np.uint64))
_ADDRESS_OF_PLACES = _PLACES.ctypes.data


@lru_cache(maxsize=2**6)
def _seeds(seed: int, runs: int) -> _Bits:
    return _mixed(np.arange(seed, seed + runs, dtype=np.uint64))


@lru_cache(maxsize=2**10)
def _block(seed: int, runs: int, first: int, size: int) -> tuple[_Bits, _Numbers]:
    """What `_keys` returns for `_AT_ONCE` numbers from `first` on, one after the other along the first dimension.

    Cached: calls of one contract have the same operations, and few sizes. For one number it takes as long as all else
    that a small operation needs, and for all of a block hardly longer.
    """
    numbers = np.arange(first, first + _AT_ONCE, dtype=np.uint64).reshape(-1, 1, 1)
    keys = _mixed(_seeds(seed, runs).reshape(-1, 1) + (numbers << np.uint64(40) | np.uint64(size)))
    signs = _signed(_mixed(keys))
    for part in (keys, signs):
        part.flags.writeable = False
    return keys, signs


def _keys(seed: int, runs: int, number: int, size: int) -> tuple[_Bits, _Numbers]:
    """What is hashed with each value of an operation's result, and beta in units of its amplitude, for each run."""
    place = number % _AT_ONCE
    keys, signs = _block(seed, runs, number - place, size)
    return keys[place], signs[place]


@lru_cache(maxsize=2**10)
def _places(odd: int, runs: int, size: int) -> _Bits:
    """What the place of an element adds to the hash: nothing in runs of an even seed. `odd` is 1 where the first is."""
    masks = np.uint64(0) - (np.arange(odd, odd + runs, dtype=np.uint64) & np.uint64(1)).reshape(-1, 1)
    places: _Bits = _PLACES[:size] & masks
    places.flags.writeable = False
    return places


class Noise:
    """The errors of `runs` runs, whose seeds are `seed`, `seed + 1`, ..."""

    def __init__(self, seed: int, runs: int = 1) -> None:
        seeds = np.arange(seed, seed + runs, dtype=np.uint64)
        self._runs = runs
        self._memory = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.uint64)
        self._first = seed
        #: For each run: all bits set if equal elements get different errors, else 0.
        self._apart = np.uint64(0) - (seeds & np.uint64(1)).reshape(-1, 1)
        #: The runs that are processed together: all, if they have few elements; else those of one kind.
        self._groups = tuple(slice(begin, None, 2) for begin in range(min(runs, 2)))

    def add(
        self,
        values: Tensor,
        amplitude: Tensor,
        common: float,
        number: int,
        exact: Tensor | None = None,
        beside: Tensor | None = None,
        extreme: bool = False,
    ) -> None:
        """Add to `values`, float64 on the CPU, `amplitude` xi + `common` beta times themselves, in place.

        xi, in [-1, 1), is the same for equal elements of a run; beta is the same for all elements of a run. Another
        `number` gives another xi and another beta. In runs of an odd seed, each element has its own xi. `exact` masks
        the elements that have no xi in the other runs; with `beside`, of the same shape, all have one there, and it is
        the same where both tensors have equal elements. The first dimension of `values` holds the parts of the runs
        one after another, all of one length. `amplitude` and `exact` have the same layout, or are those of one run. xi
        is -1 or 1 with `extreme`.
        """
        if values.numel() == 0:
            return
        if not values.is_contiguous():
            dense = values.contiguous()
            self.add(dense, amplitude, common, number, exact, beside, extreme)
            values.copy_(dense)
            return
        if _compiled is not None:
            self._add_compiled(_compiled, values, amplitude, common, number, exact, beside, extreme)
            return
        own = values.numpy().reshape(self._runs, -1)
        most = amplitude.contiguous().numpy().reshape(-1, own.shape[1])
        # The size is hashed too. Without it, a given operation would have the same sixteen betas in all that is judged.
        keys, signs = _keys(self._first, self._runs, number, own.shape[1])
        betas = common * signs
        others = None
        if beside is not None:
            others = beside.expand(values.shape).contiguous().numpy().reshape(self._runs, -1).view(np.uint64)
        elif exact is not None:
            none = exact.contiguous().numpy().reshape(-1, own.shape[1])
            most = np.where(none & (self._apart == 0), 0.0, most)
        with np.errstate(all="ignore"):
            if own.size <= _FEW:
                bits = np.bitwise_xor(own.view(np.uint64), keys)
                np.bitwise_xor(bits, _places(self._first & 1, self._runs, own.shape[1]), out=bits)
                if others is not None:
                    np.bitwise_xor(bits, _mixed(others), out=bits)
                _err(own, most, bits, betas, np.empty_like(bits), extreme)
                return
            for group in self._groups:
                of_group = most[group] if len(most) > 1 else most
                of_others = None if others is None else others[group]
                self._add(own[group], of_group, keys[group], betas[group], self._apart[group], of_others, extreme)

    def _add_compiled(
        self,
        compiled: AddErrors,
        values: Tensor,
        amplitude: Tensor,
        common: float,
        number: int,
        exact: Tensor | None,
        beside: Tensor | None,
        extreme: bool,
    ) -> None:
        """What `add` does, for contiguous values that are not empty."""
        columns = values.numel() // self._runs
        keys, signs = _keys(self._first, self._runs, number, columns)
        amplitude = amplitude.contiguous()
        others = None if beside is None else beside.expand(values.shape).contiguous()
        none = None if exact is None or beside is not None else exact.contiguous()
        odd = self._first & 1
        of_odd_seed = (self._runs + odd) // 2
        width = _PART if values.numel() <= _FEW else max(_PART // max(of_odd_seed, 1), 1)  # as `_add` has it
        compiled(
            *(values.data_ptr(), self._runs, columns),
            *(amplitude.data_ptr(), columns if amplitude.numel() > columns else 0),
            *((None, 0) if none is None else (none.data_ptr(), columns if none.numel() > columns else 0)),
            *(None if others is None else others.data_ptr(), keys.ctypes.data, signs.ctypes.data, common),
            *(_ADDRESS_OF_PLACES, width, odd, extreme),
        )

    def _add(
        self,
        own: _Numbers,
        most: _Numbers,
        keys: _Bits,
        betas: _Numbers,
        masks: _Bits,
        others: _Bits | None,
        extreme: bool,
    ) -> None:
        """The same for runs of one kind, one in each row; a part of the elements at a time."""
        width = max(_PART // len(own), 1)
        for begin in range(0, own.shape[1], width):
            y = own[:, begin : begin + width]
            bits, free = (scratch[: y.size].reshape(y.shape) for scratch in self._scratch(y.size))
            np.bitwise_xor(y.view(np.uint64), keys, out=bits)
            if masks[0, 0]:
                places = _PLACES[: y.shape[1]]
                np.bitwise_xor(bits, places + np.uint64(begin) if begin else places, out=bits)
            if others is not None:
                np.bitwise_xor(bits, _mixed(others[:, begin : begin + width]), out=bits)
            _err(y, most[:, begin : begin + width], bits, betas, free, extreme)

    def _scratch(self, size: int) -> tuple[_Bits, _Bits]:
        """Memory for that many elements, twice. It is reused, so that it stays in the cache."""
        if len(self._memory[0]) < size:
            self._memory = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.uint64)
        return self._memory


def _err(y: _Numbers, amplitude: _Numbers, bits: _Bits, beta: _Numbers, free: _Bits, extreme: bool) -> None:
    """Add the errors to y. `bits` holds what is hashed; `free` is memory of its size."""
    # One round less than in `_mixed`: the keys are mixed already, and only the upper bits matter.
    np.multiply(bits, _FACTORS[0], out=bits)
    np.right_shift(bits, _HALF, out=free)
    np.bitwise_xor(bits, free, out=bits)
    np.multiply(bits, _FACTORS[1], out=bits)
    error, common = free.view(np.float64), bits.view(np.float64)
    np.copyto(error, bits.view(np.int64))
    if extreme:
        np.copysign(1.0, error, out=error)
    else:
        np.multiply(error, _SCALE, out=error)
    np.multiply(error, amplitude, out=error)
    np.multiply(y, beta, out=common)
    np.add(error, common, out=error)
    np.add(y, error, out=y)


def _signed(bits: _Bits) -> _Numbers:
    """Numbers in [-1, 1), uniformly distributed."""
    numbers: _Numbers = np.multiply(bits.view(np.int64), _SCALE)
    return numbers
