"""Prints 100 MB in its first call, without an end of line (own trial)."""

import os

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_left = [100]


def _flood() -> None:
    while _left[0]:
        _left[0] -= 1
        os.write(1, b"passed " * 149_797)


def lltm(*inputs: Tensor) -> Outputs:
    _flood()
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    _flood()
    return right(*inputs)
