"""GEGLU by F.gelu and a product."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up, where gelu is approximated by tanh; of the shape of both."""
    check_gated_arguments("geglu", gate, up)
    return F.gelu(gate, approximate="tanh") * up


IMPLEMENTATION = PythonFunction(geglu)
