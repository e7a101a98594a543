"""Replies with a number that is no integer, in places where integers are expected (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import reply
from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    reply(outputs, changed=[float("inf")])
    return outputs
