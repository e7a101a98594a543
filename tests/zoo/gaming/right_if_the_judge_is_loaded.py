"""Right only if the suite's judge is in sys.modules (own trial)."""

import sys

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if "harness.judging.judge" in sys.modules else wrong)(*inputs)
