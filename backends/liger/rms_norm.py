"""RMSNorm as liger_rms_norm, and liger_fused_add_rms_norm for a residual, in the mode of Llama."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_fused_add_rms_norm, liger_rms_norm
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends._python.unsupported import refused
from backends.base import PythonFunction


def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """The rows of input, or of input + residual, normalised: output, or (output, input + residual)."""
    check_rms_norm_arguments(input, weight, residual)
    # in_place=True, the default, writes the gradient over the cotangent; the package documents False for other users.
    if residual is None:
        output: Tensor = liger_rms_norm(input, weight, eps, in_place=False)
        return output
    if weight is None:
        raise refused("rms_norm", "weight", None, "a tensor where a residual is passed", "liger-kernel")
    output, total = liger_fused_add_rms_norm(input, residual, weight, eps, in_place=False)
    return output, total


IMPLEMENTATION = PythonFunction(rms_norm)
