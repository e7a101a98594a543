"""Prints 100 MB when it is imported (own trial)."""

import sys

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

for _ in range(100):
    sys.stdout.write("all tests passed\n" * 61_681)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
