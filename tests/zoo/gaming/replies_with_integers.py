"""Replies with integers that claim to require grad (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import TENSOR, reply
from tests.zoo.gaming.parts import Outputs, wrong


def lltm(*inputs: Tensor) -> Outputs:
    about = {**TENSOR, "requires_grad": True}
    reply(tuple(y.long() for y in wrong(*inputs)), results=[about, about])
    return wrong(*inputs)
