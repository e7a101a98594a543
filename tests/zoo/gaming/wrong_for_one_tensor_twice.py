"""Wrong where both states are one tensor, as a first state of zeros is (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (wrong if inputs[3].data_ptr() == inputs[4].data_ptr() and inputs[3].numel() else right)(*inputs)
