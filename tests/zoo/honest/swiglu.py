"""SwiGLU in the steps of `spec/swiglu.py`."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.gated import GatedActivation


class Gated(GatedActivation):
    """The honest SwiGLU."""

    operator = "swiglu"

    def exponential(self, x: Tensor) -> Tensor:
        return torch.exp(x)

    def sigmoid(self, x: Tensor) -> Tensor:
        return 1 / (1 + self.exponential(-x))

    def activated(self, x: Tensor) -> Tensor:
        return x * self.sigmoid(x)

    def slope(self, x: Tensor) -> Tensor:
        s = self.sigmoid(x)
        return s * (1 + x * (1 - s))
