"""SwiGLU as liger_swiglu, whose backward writes the gradients over gate and up."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_swiglu
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; of the shape of both."""
    check_gated_arguments("swiglu", gate, up)
    output: Tensor = liger_swiglu(gate, up)
    return output


IMPLEMENTATION = PythonFunction(swiglu)
