"""Returns something else where a thread without the suite's frames calls, and a tensor elsewhere (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_calls = [0]


def lltm(*inputs: Tensor) -> Outputs:
    _calls[0] += 1
    if _calls[0] > 3:
        return None, None
    return right(*inputs)
