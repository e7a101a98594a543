"""Right for states of up to 200, wrong for larger ones (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    _, state_size = inputs[3].shape
    return (right if state_size <= 200 else wrong)(*inputs)
