"""Returns the old state as the new one (field guides: the input copied to the output)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    return inputs[3].clone(), inputs[4].clone()
