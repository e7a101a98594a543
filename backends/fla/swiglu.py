"""SwiGLU as fla.modules.activations.swiglu."""

from __future__ import annotations

from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction
from backends.fla import _package


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    output: Tensor = _package.swiglu(gate, up)
    return output


IMPLEMENTATION = PythonFunction(swiglu)
