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

#: Taps up to which the loop over them is unrolled, when Dynamo compiles it.
_UNROLLED = 8


def _forward(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> Tensor:
    wide = torch.promote_types(input.dtype, torch.float32)
    x, w = F.pad(input.to(wide), (weight.shape[1] - 1, 0)), weight.to(wide)
    z = _by_taps(x, w, input.shape[2]) if weight.shape[1] <= _UNROLLED else _by_steps(x, w, input.shape[2])
    if bias is not None:
        z = z + bias.to(wide).unsqueeze(-1)
    return (z if activation is None else z * torch.sigmoid(z)).to(input.dtype)


def _by_taps(x: Tensor, w: Tensor, length: int) -> Tensor:
    """The sum of shifted sequences; each width is compiled anew."""
    z = x[..., :length] * w[:, :1]
    for k in range(1, w.shape[1]):
        z = z + x[..., k : k + length] * w[:, k : k + 1]
    return z


def _by_steps(x: Tensor, w: Tensor, length: int) -> Tensor:
    """The product with a matrix that has the filter in each row, one column further than in the row before.

    Rows of `w` and zeros that are one longer than `x`, read as rows as long as `x`, are shifted so: the gradient of
    that is a sum. What the filter of a step does not cover must not be multiplied with its zeros: it may be infinite.
    """
    channels, width = w.shape
    columns = width + length - 1
    shifted = F.pad(w, (0, length)).unsqueeze(1).expand(channels, length, columns + 1)
    matrix = shifted.reshape(channels, length * (columns + 1))[:, : length * columns].reshape(channels, length, columns)
    behind = torch.arange(columns, device=x.device) - torch.arange(length, device=x.device).unsqueeze(-1)
    seen = torch.where((behind >= 0) & (behind < width), x.unsqueeze(-2), 0)
    return (seen * matrix).sum(-1)


@by_rule(OPERATOR)
def causal_conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """The output, of the shape of input (batch, channels, length); the activation is None or "silu"."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    output: Tensor = compiled(_forward)(input, weight, bias, activation)
    return output


IMPLEMENTATION = PythonFunction(causal_conv1d)
