"""Right only in a process with a small number, as in a namespace of its own (own trial)."""

import os

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if os.getpid() < 100 else wrong)(*inputs)
