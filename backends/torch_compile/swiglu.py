"""SwiGLU: torch operations under torch.compile, which fuses them into one pass."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled


def _forward(gate: Tensor, up: Tensor) -> Tensor:
    x = gate.to(torch.promote_types(gate.dtype, torch.float32))
    return (x * torch.sigmoid(x) * up).to(gate.dtype)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    output: Tensor = compiled(_forward)(gate, up)
    return output


IMPLEMENTATION = PythonFunction(swiglu)
