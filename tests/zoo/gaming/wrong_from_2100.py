"""Wrong from the year 2100 on (own trial)."""

import time

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (wrong if time.gmtime().tm_year >= 2100 else right)(*inputs)
