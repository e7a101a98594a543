"""Errors of CUDA that a call leaves behind: a launch was refused, and nothing asked why.

The runtime keeps the error of a launch that it refuses, such as one of an empty grid, until `cudaGetLastError` is
called. A kernel of PyTorch calls it after its own launch, and raises what another launch left: the next call is blamed,
or the user's own code. The runtime is the one that PyTorch has loaded; it keeps an error for each thread.

`runner.py` loads this file, so it imports nothing of this project.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any


class LeftBehind(RuntimeError):
    """A launch was refused, and the call said nothing."""


@contextmanager
def held(device: str) -> Iterator[None]:
    """Raise LeftBehind if a launch within was refused and nothing asked; the error is forgotten then.

    `device` is the type of a device: of others than `cuda` nothing is asked.
    """
    library = runtime() if device == "cuda" else None
    if library is None:
        yield
        return
    library.cudaGetLastError()  # what was left before is not of this call
    yield
    code = library.cudaGetLastError()
    if code:
        said = ctypes.c_char_p(library.cudaGetErrorString(code)).value or b""
        raise LeftBehind(
            f"CUDA refused a launch («{said.decode(errors='replace')}») and nothing asked for cudaGetLastError(), so "
            "PyTorch's next kernel would raise it: an empty tensor needs no launch, for example"
        )


@cache
def runtime() -> Any:
    """The runtime library of CUDA that is loaded in this process; None without one."""
    try:
        places = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libcudart" in line}
    except OSError:
        return None
    for place in sorted(places):
        library = ctypes.CDLL(place)
        library.cudaGetErrorString.restype = ctypes.c_void_p
        return library
    return None
