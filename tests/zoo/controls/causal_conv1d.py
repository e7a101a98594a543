"""Causal convolution, right but different: each control must pass every property that `gives_up` does not name."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.causal_conv1d import check_causal_conv1d_arguments
from tests.zoo.honest.causal_conv1d import Filter, Optional
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Filter):
    """The honest convolution, the base of every fault."""


@control(gives_up=OLD_STYLE)
class AddedFromTheLast(Filter):
    """The terms are added from the latest step to the earliest."""

    def added(self, terms: list[Tensor]) -> Tensor:
        return super().added(terms[::-1])


@control(gives_up=OLD_STYLE)
class BeginsWithTheBias(Filter):
    """The sum begins with the bias, as an accumulator does that is set to it."""

    def z(self, x: Tensor, w: Tensor, bias: Optional) -> Tensor:
        start = torch.zeros_like(x[:, :, :1]) if bias is None else bias.to(x.dtype).view(1, -1, 1)
        before, length = self.padded(x, w.shape[1]), x.shape[2]
        return self.added([start, *(before[..., k : k + length] * self.tap(w, k) for k in range(w.shape[1]))])


@control(gives_up=OLD_STYLE)
class SiluByQuotient(Filter):
    """silu is z / (1 + exp(-z)), as the kernel of causal-conv1d has it."""

    def silu(self, z: Tensor) -> Tensor:
        return z / (1 + torch.exp(-z))


@control
def padded_on_both_sides(input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None) -> Tensor:
    """F.conv1d pads both ends, and what is behind the last step is cut off, as Mamba does; half types in float32."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    dtype, padding = torch.promote_types(input.dtype, torch.float32), weight.shape[1] - 1
    bias = None if bias is None else bias.to(dtype)
    z = F.conv1d(input.to(dtype), weight.to(dtype).unsqueeze(1), bias, padding=padding, groups=weight.shape[0])
    z = z[..., : input.shape[2]]
    return (z if activation is None else F.silu(z)).to(input.dtype)


@control
def everything_in_float64(
    input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    before = F.pad(input.double(), (weight.shape[1] - 1, 0)).unfold(-1, weight.shape[1], 1)
    z = (before * weight.double().unsqueeze(1)).sum(-1)
    z = z if bias is None else z + bias.double().unsqueeze(-1)
    return (z if activation is None else z * torch.sigmoid(z)).to(input.dtype)


@control
def channels_last(input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None) -> Tensor:
    """Computed with the channels last in memory; the output stays so."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    dtype, width = torch.promote_types(input.dtype, torch.float32), weight.shape[1]
    w, x = weight.to(dtype).t(), input.transpose(1, 2).to(dtype)
    x = F.pad(x, (0, 0, width - 1, 0))
    z = sum(x[:, k : k + input.shape[2]] * w[k] for k in range(width))
    z = z if bias is None else z + bias.to(dtype)
    return (z if activation is None else F.silu(z)).to(input.dtype).transpose(1, 2)
