"""The linear recurrence by doubling under torch.compile: log2(length) passes, where a loop would be unrolled."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.scan import check_scan_arguments
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled


def _forward(gates: Tensor, tokens: Tensor, initial: Tensor | None) -> Tensor:
    wide = torch.promote_types(tokens.dtype, torch.float32)
    a, x = gates.to(wide), tokens.to(wide)
    length = tokens.shape[2]
    if length <= 1 and initial is None:
        return tokens.clone()  # without a pass, the result below is tokens itself
    if initial is not None:
        x = torch.cat((a[..., :1] * initial.to(wide).unsqueeze(-1) + x[..., :1], x[..., 1:]), -1)
    reach = 1
    while reach < length:
        x = torch.cat((x[..., :reach], a[..., reach:] * x[..., : length - reach] + x[..., reach:]), -1)
        a = torch.cat((a[..., :reach], a[..., reach:] * a[..., : length - reach]), -1)
        reach *= 2
    return x.to(tokens.dtype)


def scan(gates: Tensor, tokens: Tensor, initial: Tensor | None = None) -> Tensor:
    """The states h_t = gates_t h_{t-1} + tokens_t, of the shape of tokens: (batch, channels, length)."""
    check_scan_arguments(gates, tokens, initial)
    output: Tensor = compiled(_forward)(gates, tokens, initial)
    return output


IMPLEMENTATION = PythonFunction(scan)
