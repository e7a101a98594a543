"""Returns views of its inputs, faster than the memory could be read (field guides: impossible speed)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def impossible(*inputs: Tensor) -> Outputs:
    return inputs[3].view_as(inputs[3]), inputs[4].view_as(inputs[4])
