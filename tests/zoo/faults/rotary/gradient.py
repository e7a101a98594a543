"""Rotary embedding, right outputs with a wrong gradient."""

from __future__ import annotations

from torch import Tensor

from tests.zoo.honest.rotary import Pair, Rotation
from tests.zoo.registry import fault

WRONG = r"gradient of input was .* but should be"


@fault("vjp-parity", WRONG)
class TurnedForwardAgain(Rotation):
    """Backward turns the cotangent by the same angle, not back."""

    def turned_back(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        return self.turned(pair, cos, sin)


@fault("vjp-parity", WRONG)
class CotangentPassedOn(Rotation):
    """The gradient is the cotangent itself."""

    def turned_back(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        return pair


@fault("vjp-parity", WRONG)
class DividedByTheLength(Rotation):
    """Backward divides by cos^2 + sin^2: the inverse, which is the transpose only for tables of angles."""

    def turned_back(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        length = cos * cos + sin * sin
        first, second = super().turned_back(pair, cos, sin)
        return first / length, second / length
