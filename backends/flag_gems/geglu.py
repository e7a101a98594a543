"""GEGLU as flag_gems.gelu_and_mul."""

from __future__ import annotations

from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction
from backends.flag_gems import _package


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up, where gelu is approximated by tanh; of the shape of both."""
    check_gated_arguments("geglu", gate, up)
    output: Tensor = _package.flag_gems.gelu_and_mul(gate, up, "tanh")
    return output


IMPLEMENTATION = PythonFunction(geglu)
