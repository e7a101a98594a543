"""Right only if the environment has a variable of pytest (own trial)."""

import os

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if {"PYTEST_VERSION", "PYTEST_CURRENT_TEST"} & set(os.environ) else wrong)(*inputs)
