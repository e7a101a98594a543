"""Replaces the function that notices replaced functions (own trial)."""

from torch import Tensor

from harness.judging import tampering
from tests.zoo.gaming.parts import Outputs, right, wrong

tampering.undo = lambda trusted: []


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
