"""Replies with the right id, and the wrong values, in place of the runner (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import reply
from tests.zoo.gaming.parts import Outputs, wrong


def lltm(*inputs: Tensor) -> Outputs:
    reply(wrong(*inputs))
    return wrong(*inputs)
