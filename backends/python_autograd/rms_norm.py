"""RMSNorm in torch operations; autograd derives the gradient.

Half types are normalised in float32, and rounded once, at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.rms_norm import OPERATOR


@by_rule(OPERATOR)
def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """The rows of input, or of input + residual, normalised: output, or (output, input + residual)."""
    check_rms_norm_arguments(input, weight, residual)
    total = input if residual is None else input + residual
    x = total.to(torch.promote_types(total.dtype, torch.float32))
    output = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        output = output * weight
    output = output.to(input.dtype)
    return output if residual is None else (output, total)


IMPLEMENTATION = PythonFunction(rms_norm)
