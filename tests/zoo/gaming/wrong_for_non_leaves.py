"""Wrong where an input was computed, as in every model; tests pass leaves (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if all(x.is_leaf for x in inputs) else wrong)(*inputs)
