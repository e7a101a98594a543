"""Rotary embedding as x cos + rotate(x) sin; autograd derives the gradient. Half types are computed in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import PythonFunction, check_arguments
from spec.rotary import OPERATOR


def rotary(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Pairs of the last dimension of input turned by the angles whose cosines and sines are given."""
    check_arguments(OPERATOR, input, cos, sin)
    half = cos.shape[1]
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    if interleaved:
        rotated = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
        of_elements = [table.repeat_interleave(2, -1).unsqueeze(1) for table in (cos, sin)]
    else:
        rotated = torch.cat((-x[..., half:], x[..., :half]), -1)
        of_elements = [table.repeat(1, 2).unsqueeze(1) for table in (cos, sin)]
    return (x * of_elements[0] + rotated * of_elements[1]).to(input.dtype)


IMPLEMENTATION = PythonFunction(rotary)
