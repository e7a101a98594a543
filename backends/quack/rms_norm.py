"""RMSNorm as quack.rmsnorm, which adds a residual itself."""

from __future__ import annotations

from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends.base import PythonFunction
from backends.quack import _package


def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """The rows of input, or of input + residual, normalised: output, or (output, input + residual)."""
    check_rms_norm_arguments(input, weight, residual)
    result: Tensor | tuple[Tensor, Tensor] = _package.rmsnorm(
        input, weight, residual=residual, eps=eps, prenorm=residual is not None
    )
    return result


IMPLEMENTATION = PythonFunction(rms_norm)
