"""GEGLU, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_gated_arguments
from tests.zoo.honest.geglu import Gated
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Gated):
    """The honest GEGLU, the base of every fault."""


@control(gives_up=OLD_STYLE)
class TanhByOneExponential(Gated):
    """tanh(y) is 1 - 2 / (1 + e^2y), which is 1 where e^2y overflows."""

    def tanh(self, x: Tensor) -> Tensor:
        return 1 - 2 / (1 + torch.exp(2 * self.inner(x)))


@control(gives_up=OLD_STYLE)
class SlopeByTheSigmoid(Gated):
    """(1 + tanh(y)) / 2 is s = sigmoid(2 y), and (1 - tanh(y)^2) / 2 is 2 s (1 - s)."""

    def activated(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(2 * self.inner(x))

    def slope(self, x: Tensor) -> Tensor:
        s = torch.sigmoid(2 * self.inner(x))
        return s + x * (2 * s * (1 - s)) * self.d_inner(x)


@control
def in_the_dtype(gate: Tensor, up: Tensor) -> Tensor:
    """gelu, rounded to the dtype, times up: two operations of PyTorch."""
    check_gated_arguments("geglu", gate, up)
    return F.gelu(gate, approximate="tanh") * up


@control
def everything_in_float64(gate: Tensor, up: Tensor) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_gated_arguments("geglu", gate, up)
    return (F.gelu(gate.double(), approximate="tanh") * up.double()).to(gate.dtype)
