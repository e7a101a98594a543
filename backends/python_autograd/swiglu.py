"""SwiGLU in torch operations; autograd derives the gradient. Half types are computed in float32, rounded once."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    x = gate.to(torch.promote_types(gate.dtype, torch.float32))
    return (x * torch.sigmoid(x) * up).to(gate.dtype)


IMPLEMENTATION = PythonFunction(swiglu)
