"""RMSNorm as F.rms_norm; a residual is added before it."""

from __future__ import annotations

import torch.nn.functional as F
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
    output = F.rms_norm(total, total.shape[-1:], weight, eps)
    return output if residual is None else (output, total)


IMPLEMENTATION = PythonFunction(rms_norm)
