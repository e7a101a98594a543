"""Count the bytes in use: all that an implementation keeps, whichever library allocated it.

On the CPU, glibc's malloc gives the figure: torch, C++ and C allocate through it. What Python's own allocator holds in
small pieces is not counted; no tensor is among it. On CUDA, PyTorch's allocator gives the bytes that were
requested of it: a block that it reuses may be up to a megabyte larger. Figures are exact: nothing is sampled or
rounded up to pages.
"""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

import torch

#: Bytes of the allocation that shows whether malloc counts: more than what other threads free meanwhile.
_PROBE = 2**26
#: How often the bytes on a GPU are read until two readings agree, and the seconds in between.
_LOOKS, _PAUSE = 20, 0.01


class _Mallinfo2(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


def on_host() -> int:
    """Bytes that malloc has given out and that were not freed. Raises OSError if the C library has no mallinfo2."""
    found = _mallinfo2()()
    return int(found.uordblks) + int(found.hblkhd)


@lru_cache(maxsize=1)
def _mallinfo2() -> ctypes._NamedFuncPointer:
    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        raise OSError("this C library has no mallinfo2; glibc has it from 2.33 on") from None
    function.restype = _Mallinfo2
    return function


def in_use(device: torch.device) -> int:
    """Bytes in use on the device of the tensors, after garbage is collected and queued work is done."""
    gc.collect()
    if device.type != "cuda":
        return on_host()
    torch.cuda.synchronize(device)
    # Autograd's thread of a GPU frees what it used last a little after backward has returned.
    found = _requested("current", device)
    for _ in range(_LOOKS):
        time.sleep(_PAUSE)
        before, found = found, _requested("current", device)
        if found == before:
            break
    return found


def peak() -> int:
    """The most bytes in use on the current GPU since `torch.cuda.reset_peak_memory_stats`."""
    return _requested("peak", torch.device("cuda"))


def _requested(when: str, device: torch.device) -> int:
    return int(torch.cuda.memory_stats(device)[f"requested_bytes.all.{when}"])


@contextmanager
def of_what_follows() -> Iterator[None]:
    """Inside, collect only garbage that is made inside: a look at all that a long run holds takes half a second.

    Garbage of before stays until the end, so it changes no figure.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@lru_cache(maxsize=1)
def unaccountable() -> str:
    """Why bytes on the host cannot be counted here; empty if they can. Tested with an allocation, which is not used."""
    try:
        # Garbage that is freed between the two looks would be taken for bytes that malloc does not count.
        with of_what_follows():
            before = on_host()
            held = torch.empty(_PROBE, dtype=torch.uint8)
            counted = on_host() - before >= _PROBE // 2
    except OSError as error:
        return str(error)
    del held
    return "" if counted else "malloc is not glibc's (a sanitizer's, for example) and does not count its bytes"
