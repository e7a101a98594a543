"""GEGLU as liger_geglu, whose backward writes the gradients over gate and up."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_geglu
from torch import Tensor

from backends._python.rows import check_gated_arguments
from backends.base import PythonFunction


def geglu(gate: Tensor, up: Tensor) -> Tensor:
    """gelu(gate) * up, where gelu is approximated by tanh; of the shape of both."""
    check_gated_arguments("geglu", gate, up)
    output: Tensor = liger_geglu(gate, up)
    return output


IMPLEMENTATION = PythonFunction(geglu)
