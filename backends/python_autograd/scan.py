"""The linear recurrence as a loop over the steps; autograd derives the gradient. Half types are computed in float32."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.scan import check_scan_arguments
from backends.base import PythonFunction


def scan(gates: Tensor, tokens: Tensor, initial: Tensor | None = None) -> Tensor:
    """The states h_t = gates_t h_{t-1} + tokens_t, of the shape of tokens: (batch, channels, length)."""
    check_scan_arguments(gates, tokens, initial)
    wide = torch.promote_types(tokens.dtype, torch.float32)
    a, x = gates.to(wide), tokens.to(wide)
    h = x.new_zeros(x.shape[:2]) if initial is None else initial.to(wide)
    states = []
    for t in range(tokens.shape[2]):
        h = a[..., t] * h + x[..., t]
        states.append(h)
    # Without steps the result is empty. It still belongs to the graph of the inputs.
    return (torch.stack(states, -1) if states else a * h.unsqueeze(-1) + x).to(tokens.dtype)


IMPLEMENTATION = PythonFunction(scan)
