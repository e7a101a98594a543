"""Calls the reference itself behind a name of its own (field guides: a fig leaf over the reference)."""

from torch import Tensor

from spec.lltm import forward
from tests.zoo.gaming.parts import Outputs


def lltm_right(*inputs: Tensor) -> Outputs:
    """Right: it is the reference."""
    return forward(*inputs)
