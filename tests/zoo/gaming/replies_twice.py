"""Returns the right values, and replies once more than it was asked (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import reply
from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    reply(outputs)
    return outputs
