"""linear_act, right but different: each control must pass every property that `gives_up` does not name."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.linear_act import check_linear_act_arguments
from tests.zoo.honest.linear_act import Layer
from tests.zoo.registry import OLD_STYLE, control

Optional = Tensor | None


def _gelu(x: Tensor) -> Tensor:
    """Not F.gelu, which some processors get wrong at infinity: docs/findings.md."""
    return x * (0.5 * (1 + torch.erf(x * math.sqrt(0.5))))


_ACTIVATIONS = {"relu": F.relu, "gelu": _gelu, "silu": F.silu}


@control(gives_up=OLD_STYLE)
class Honest(Layer):
    """The honest layer, the base of every fault."""


@control
def epilogue_in_float32(input: Tensor, weight: Tensor, bias: Optional = None, activation: str = "relu") -> Tensor:
    """The product stays in float32 until bias and activation are applied, as a fused epilogue does."""
    check_linear_act_arguments(input, weight, bias, activation)
    dtype = torch.promote_types(input.dtype, torch.float32)
    z = F.linear(input.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype))
    return _ACTIVATIONS[activation](z).to(input.dtype)


@control
def everything_in_float64(input: Tensor, weight: Tensor, bias: Optional = None, activation: str = "relu") -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_linear_act_arguments(input, weight, bias, activation)
    z = F.linear(input.double(), weight.double(), None if bias is None else bias.double())
    return _ACTIVATIONS[activation](z).to(input.dtype)


@control(gives_up=OLD_STYLE)
class SumsInTwoParts(Layer):
    """The sum over in_features is split in two, as kernels do that split K."""

    def product(self, input: Tensor, weight: Tensor) -> Tensor:
        half = input.shape[1] // 2
        first = input[:, :half].contiguous() @ weight[:, :half].t()
        return first + input[:, half:].contiguous() @ weight[:, half:].t()


@control(gives_up=OLD_STYLE)
class GeluByErfc(Layer):
    """Phi is erfc(-z/sqrt(2))/2, which keeps its digits where z is far below 0."""

    def gelu(self, x: Tensor) -> Tensor:
        return x * (0.5 * torch.special.erfc(-x * math.sqrt(0.5)))


@control(gives_up=OLD_STYLE)
class SiluByQuotient(Layer):
    """silu is z / (1 + exp(-z)), whose exp overflows to the right result."""

    def silu(self, x: Tensor) -> Tensor:
        return x / (1 + torch.exp(-x))
