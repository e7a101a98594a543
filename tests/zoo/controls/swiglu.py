"""SwiGLU, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_gated_arguments
from tests.zoo.honest.swiglu import Gated
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Gated):
    """The honest SwiGLU, the base of every fault."""


@control(gives_up=OLD_STYLE)
class PowersOfTwo(Gated):
    """exp2 of x times log2(e), rounded, as Triton and CUDA's fast exponential compute exp."""

    def exponential(self, x: Tensor) -> Tensor:
        return torch.exp2(x * 1.4426950408889634)


@control(gives_up=OLD_STYLE)
class SlopeAsASum(Gated):
    """The slope is s + silu(x) (1 - s), as kernels that keep the activation have it."""

    def slope(self, x: Tensor) -> Tensor:
        s = self.sigmoid(x)
        return s + self.activated(x) * (1 - s)


@control
def in_the_dtype(gate: Tensor, up: Tensor) -> Tensor:
    """silu, rounded to the dtype, times up: two operations of PyTorch."""
    check_gated_arguments("swiglu", gate, up)
    return F.silu(gate) * up
