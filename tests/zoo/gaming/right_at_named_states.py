"""Right at the state sizes that the contract names, wrong at all others (field guides: hard-coded shapes)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

NAMED = frozenset({1, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 128, 255, 256, 257, 700, 1023, 1024, 1025})


def lltm(*inputs: Tensor) -> Outputs:
    return (right if inputs[3].shape[1] in NAMED else wrong)(*inputs)
