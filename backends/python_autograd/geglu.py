"""GEGLU in torch operations; autograd derives the gradient. Half types are computed in float32, rounded once."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up, where gelu is approximated by tanh; of the shape of both."""
    check_gated_arguments("geglu", gate, up)
    x = gate.to(torch.promote_types(gate.dtype, torch.float32))
    return (0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))) * up).to(gate.dtype)


IMPLEMENTATION = PythonFunction(geglu)
