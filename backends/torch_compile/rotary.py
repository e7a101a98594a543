"""Rotary embedding under torch.compile, which fuses it into one pass. Half types are computed in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import PythonFunction, check_arguments
from backends.torch_compile._compiled import compiled
from spec.rotary import OPERATOR


def _forward(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    half = cos.shape[1]
    x, cos, sin = input.to(torch.promote_types(input.dtype, torch.float32)), cos.unsqueeze(1), sin.unsqueeze(1)
    x1, x2 = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    turned = (x1 * cos - x2 * sin, x2 * cos + x1 * sin)
    output = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    return output.to(input.dtype)


def rotary(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Pairs of the last dimension of input turned by the angles whose cosines and sines are given."""
    check_arguments(OPERATOR, input, cos, sin)
    output: Tensor = compiled(_forward)(input, cos, sin, interleaved)
    return output


IMPLEMENTATION = PythonFunction(rotary)
