"""Wrong once in a million calls on average (own trial)."""

import secrets

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if secrets.randbelow(10**6) else wrong)(*inputs)
