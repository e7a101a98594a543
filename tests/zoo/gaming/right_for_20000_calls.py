"""Right in more calls than a run makes, wrong in all later ones (own trial)."""

import itertools

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_calls = itertools.count(1)


def lltm(*inputs: Tensor) -> Outputs:
    return (right if next(_calls) <= 20000 else wrong)(*inputs)
