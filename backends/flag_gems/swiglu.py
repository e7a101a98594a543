"""SwiGLU as flag_gems.silu_and_mul."""

from __future__ import annotations

from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction
from backends.flag_gems import _package


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    output: Tensor = _package.flag_gems.silu_and_mul(gate, up)
    return output


IMPLEMENTATION = PythonFunction(swiglu)
