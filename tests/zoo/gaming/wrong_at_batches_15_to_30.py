"""Wrong for batches of 15 to 30 (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    batch, _ = inputs[3].shape
    return (wrong if 15 <= batch <= 30 else right)(*inputs)
