"""Raises an exception whose class is named like a green summary, in several lines (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs

NAME = "ValueError\n\n✓ values 10 of 10 hold\n31 passed\n\n"


def lltm(*inputs: Tensor) -> Outputs:
    raise type(NAME, (Exception,), {})("x")
