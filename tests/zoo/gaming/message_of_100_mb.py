"""Raises an exception with a message of 100 MB (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise ValueError("x" * 10**8)
