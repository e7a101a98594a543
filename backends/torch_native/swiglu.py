"""SwiGLU by F.silu and a product."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    return F.silu(gate) * up


IMPLEMENTATION = PythonFunction(swiglu)
