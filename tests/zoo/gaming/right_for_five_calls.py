"""Right in the first five calls of a process, wrong in all later ones (field guides: warm-up detection)."""

import itertools

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_calls = itertools.count(1)


def lltm(*inputs: Tensor) -> Outputs:
    return (right if next(_calls) <= 5 else wrong)(*inputs)
