"""Wrong where the state size is a multiple of 100 (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    _, state_size = inputs[3].shape
    return (wrong if state_size % 100 == 0 else right)(*inputs)
