"""Sends replies without end (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import reply
from tests.zoo.gaming.parts import Outputs, wrong


def lltm(*inputs: Tensor) -> Outputs:
    while True:
        reply(wrong(*inputs))
