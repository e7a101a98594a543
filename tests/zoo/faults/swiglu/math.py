"""SwiGLU, wrong outputs: another activation, fewer digits."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.swiglu import Gated
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class SteeperSigmoid(Gated):
    """x sigmoid(1.702 x), which approximates gelu, in place of silu."""

    def sigmoid(self, x: Tensor) -> Tensor:
        return super().sigmoid(1.702 * x)


@fault("forward-parity", WRONG)
class GeluInPlaceOfSilu(Gated):
    """The activation of GEGLU."""

    def activated(self, x: Tensor) -> Tensor:
        return F.gelu(x)


@fault("forward-parity", WRONG)
class FewDigitsOfLog2E(Gated):
    """exp2 of x times 1.44269, so that the exponent is off by 3.5e-6 of itself."""

    def exponential(self, x: Tensor) -> Tensor:
        return torch.exp2(x * 1.44269)


@fault("forward-parity", WRONG)
class ExponentInBfloat16(Gated):
    """The exponent is rounded to bfloat16 before the power of two is taken."""

    def exponential(self, x: Tensor) -> Tensor:
        return torch.exp2((x * 1.4426950408889634).bfloat16().to(x.dtype))


@fault("forward-parity", WRONG)
class ClampedExponent(Gated):
    """The exponent is clamped to 20 against overflow, so that large negative gates are not 0."""

    def exponential(self, x: Tensor) -> Tensor:
        return super().exponential(x.clamp(max=20.0))
