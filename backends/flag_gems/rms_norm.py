"""RMSNorm as flag_gems.rms_norm, with a weight and without a residual."""

from __future__ import annotations

from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends._python.unsupported import refused
from backends.base import PythonFunction
from backends.flag_gems import _package


def rms_norm(input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6) -> Tensor:
    """The rows of input normalised; of the shape of input."""
    check_rms_norm_arguments(input, weight, residual)
    if weight is None:
        raise refused("rms_norm", "weight", None, "a tensor", "flag-gems")
    if residual is not None:
        raise refused("rms_norm", "residual", "a tensor", "None", "flag-gems")
    output: Tensor = _package.flag_gems.rms_norm(input, list(weight.shape), weight, eps)
    return output


IMPLEMENTATION = PythonFunction(rms_norm)
