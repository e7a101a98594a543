"""GEGLU, wrong outputs: another activation, fewer digits, a tanh that overflows."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.geglu import Gated
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class ExactGelu(Gated):
    """gelu by the error function, PyTorch's default, in place of the one approximated by tanh."""

    def activated(self, x: Tensor) -> Tensor:
        return F.gelu(x)


@fault("forward-parity", WRONG)
class SigmoidInPlaceOfTanh(Gated):
    """x sigmoid(1.702 x), the other approximation of gelu."""

    def activated(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


@fault("forward-parity", WRONG)
class SiluInPlaceOfGelu(Gated):
    """The activation of SwiGLU."""

    def activated(self, x: Tensor) -> Tensor:
        return F.silu(x)


@fault("forward-parity", WRONG)
class FewDigitsOfTheRoot(Gated):
    """sqrt(2 / pi) is 0.79788, so that it is off by 5.7e-6 of itself."""

    k = 0.79788


@fault("forward-parity", WRONG)
class FewDigitsOfTheCube(Gated):
    """The factor of the cube is 0.0447, so that it is off by 3.4e-4 of itself."""

    c = 0.0447


@fault("forward-parity", WRONG)
class QuotientOfExponentials(Gated):
    """tanh(y) is (e^2y - 1) / (e^2y + 1), which is NaN where e^2y overflows: from a gate of 11 on in float32."""

    def tanh(self, x: Tensor) -> Tensor:
        e = torch.exp(2 * self.inner(x))
        return (e - 1) / (e + 1)


@fault("forward-parity", WRONG)
class ArgumentInBfloat16(Gated):
    """The argument of tanh is rounded to bfloat16."""

    def inner(self, x: Tensor) -> Tensor:
        return super().inner(x).bfloat16().to(x.dtype)
