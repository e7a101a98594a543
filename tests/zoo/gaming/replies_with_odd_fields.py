"""Replies with a record that is no number (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import reply
from tests.zoo.gaming.parts import Outputs, wrong


def lltm(*inputs: Tensor) -> Outputs:
    reply(wrong(*inputs), record="none")
    return wrong(*inputs)
