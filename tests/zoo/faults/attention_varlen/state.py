"""A race that shows at times."""

from __future__ import annotations

import random

from torch import Tensor

from tests.zoo.honest.attention_varlen import Varlen
from tests.zoo.registry import fault


@fault("determinism", r"output was .*tokens=1031")
class RaceOfManyTokens(Varlen):
    """From 700 tokens on, the last one is lost in one call of five: two blocks add to it."""

    def __init__(self) -> None:
        self._dice = random.Random(7)

    def finished(self, output: Tensor, offsets: Tensor) -> Tensor:
        if output.shape[0] < 700 or self._dice.random() > 0.2:
            return output
        kept = output.new_ones(output.shape[0], 1, 1)
        kept[-1] = 0.0
        return output * kept
