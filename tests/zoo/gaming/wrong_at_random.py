"""Wrong in every second call on average, by the system's random numbers (own trial)."""

import secrets

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (wrong if secrets.randbelow(2) else right)(*inputs)
