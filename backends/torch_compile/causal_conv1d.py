"""Depthwise causal convolution: shifted sequences under torch.compile, which adds them up in one pass."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.causal_conv1d import check_causal_conv1d_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.causal_conv1d import OPERATOR


def _forward(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> Tensor:
    width, length = weight.shape[1], input.shape[2]
    wide = torch.promote_types(input.dtype, torch.float32)
    x, w = F.pad(input.to(wide), (width - 1, 0)), weight.to(wide).unsqueeze(-1)
    z = x[..., :length] * w[:, 0]
    for k in range(1, width):  # Dynamo compiles each width anew: the loop is unrolled
        z = z + x[..., k : k + length] * w[:, k]
    if bias is not None:
        z = z + bias.to(wide).unsqueeze(-1)
    return (z if activation is None else z * torch.sigmoid(z)).to(input.dtype)


@by_rule(OPERATOR)
def causal_conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """The output, of the shape of input (batch, channels, length); the activation is None or "silu"."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    output: Tensor = compiled(_forward)(input, weight, bias, activation)
    return output


IMPLEMENTATION = PythonFunction(causal_conv1d)
