"""Right only in a program that looks like this suite's runner (own trial)."""

import sys

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if hasattr(sys.modules["__main__"], "Runner") else wrong)(*inputs)
