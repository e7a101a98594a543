"""GEGLU in the steps of `spec/geglu.py`."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.zoo.honest.gated import GatedActivation


class Gated(GatedActivation):
    """The honest GEGLU."""

    operator = "geglu"
    k, c = math.sqrt(2 / math.pi), 0.044715

    def inner(self, x: Tensor) -> Tensor:
        return self.k * (x + self.c * x * x * x)

    def d_inner(self, x: Tensor) -> Tensor:
        return self.k * (1 + 3 * self.c * x * x)

    def tanh(self, x: Tensor) -> Tensor:
        return torch.tanh(self.inner(x))

    def activated(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + self.tanh(x))

    def slope(self, x: Tensor) -> Tensor:
        t = self.tanh(x)
        return 0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * self.d_inner(x))
