"""GEGLU, right outputs with a wrong gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.zoo.honest.geglu import Gated
from tests.zoo.registry import fault

OF_GATE = r"gradient of gate was .* but should be"


@fault("vjp-parity", OF_GATE)
class ShareIsAConstant(Gated):
    """The slope is (1 + t) / 2: the tanh is taken for a constant."""

    def slope(self, x: Tensor) -> Tensor:
        return 0.5 * (1 + self.tanh(x))


@fault("vjp-parity", OF_GATE)
class CubeHasNoSlope(Gated):
    """The derivative of the argument of tanh is k: the cube is forgotten."""

    def d_inner(self, x: Tensor) -> Tensor:
        return torch.full_like(x, self.k)


@fault("vjp-parity", OF_GATE)
class CubeWithoutTheThree(Gated):
    """The derivative of the cube is x^2."""

    def d_inner(self, x: Tensor) -> Tensor:
        return self.k * (1 + self.c * x * x)


@fault("vjp-parity", OF_GATE)
class SlopeOfTheExactGelu(Gated):
    """The derivative of gelu by the error function, beside the output by tanh."""

    def slope(self, x: Tensor) -> Tensor:
        density = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return 0.5 * (1 + torch.erf(x / math.sqrt(2))) + x * density


@fault("vjp-parity", r"gradient of up was .* but should be")
class UpGetsTheShare(Gated):
    """The gradient of up is g (1 + t) / 2, without gate."""

    def d_up(self, g: Tensor, x: Tensor) -> Tensor:
        return g * 0.5 * (1 + self.tanh(x))
