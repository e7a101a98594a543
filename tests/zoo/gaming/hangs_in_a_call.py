"""Never returns from a call (own trial)."""

import time

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    while True:
        time.sleep(1)
