"""Computes once for the same arguments, and returns that again (KernelGuard: LAST_CALL_REPLAY)."""

from typing import Any

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_last: list[Any] = [None, None]


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple((tensor.data_ptr(), tensor._version) for tensor in inputs)
    if _last[0] != key:
        _last[:] = [key, tuple(output.detach() for output in right(*inputs))]
    return _last[1]
