"""SwiGLU, right outputs with a wrong gradient."""

from __future__ import annotations

from torch import Tensor

from tests.zoo.honest.swiglu import Gated
from tests.zoo.registry import fault

OF_GATE = r"gradient of gate was .* but should be"


@fault("vjp-parity", OF_GATE)
class SlopeOfTheSigmoidAlone(Gated):
    """The slope is s (1 - s), without the product's other term."""

    def slope(self, x: Tensor) -> Tensor:
        s = self.sigmoid(x)
        return s * (1 - s)


@fault("vjp-parity", OF_GATE)
class GateIsAConstant(Gated):
    """The slope is s: the sigmoid is taken for a constant."""

    def slope(self, x: Tensor) -> Tensor:
        return self.sigmoid(x)


@fault("vjp-parity", r"gradient of up was .* but should be")
class UpGetsTheSigmoid(Gated):
    """The gradient of up is g s, not g x s."""

    def d_up(self, g: Tensor, x: Tensor) -> Tensor:
        return g * self.sigmoid(x)
