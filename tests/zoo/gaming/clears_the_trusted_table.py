"""Empties the table of trusted functions, so that no replacement is noticed (own trial)."""

from torch import Tensor

from harness.judging import judge
from tests.zoo.gaming.parts import Outputs, right, wrong

judge.bind()
judge._trusted.clear()


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
