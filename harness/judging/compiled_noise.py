"""The errors of `spec.noise`, added by a compiled function: a fifth of the time of expected results is saved.

The results are the same to the last bit. Without a compiler, numpy computes them.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from backends.base import CPU, CompiledOperator
from harness.building import build
from harness.errors import HarnessError
from spec import noise

_NOISE = CompiledOperator(
    "noise", "expected_results", (Path(__file__).with_suffix(".cpp"),), flags=("-O3", "-ffp-contract=off")
)
_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p
_ARGUMENTS = (
    *(_POINTER, _SIZE, _SIZE, _POINTER, _SIZE, _POINTER, _SIZE, _POINTER, _POINTER, _POINTER),
    *(ctypes.c_double, _POINTER, _SIZE, ctypes.c_int, ctypes.c_int),
)


def use(allowed: bool) -> None:
    """Have `spec.noise` call the compiled function, built if it is not yet; or numpy, if it is not allowed."""
    noise.use(_built() if allowed else None)


@cache
def _built() -> noise.AddErrors | None:
    """The function; None where it cannot be built."""
    try:
        function = ctypes.CDLL(str(build.build(_NOISE, CPU))).add_errors
    except (HarnessError, OSError):
        return None
    function.argtypes, function.restype = _ARGUMENTS, None
    return function
