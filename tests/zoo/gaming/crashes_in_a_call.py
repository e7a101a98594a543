"""Reads address 0 in a call (own trial)."""

import ctypes

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    ctypes.string_at(0)
