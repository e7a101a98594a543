"""RMSNorm: a composition of torch operations under torch.compile, which fuses it into one pass over the rows.

Half types are normalised in float32, and rounded once, at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.rms_norm import OPERATOR


def _forward(
    input: Tensor, weight: Tensor | None, residual: Tensor | None, eps: float
) -> Tensor | tuple[Tensor, Tensor]:
    total = input if residual is None else input + residual
    x = total.to(torch.promote_types(total.dtype, torch.float32))
    output = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    if weight is not None:
        output = output * weight
    output = output.to(input.dtype)
    return output if residual is None else (output, total)


@by_rule(OPERATOR)
def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """The rows of input, or of input + residual, normalised: output, or (output, input + residual)."""
    check_rms_norm_arguments(input, weight, residual)
    result: Tensor | tuple[Tensor, Tensor] = compiled(_forward)(input, weight, residual, eps)
    return result


IMPLEMENTATION = PythonFunction(rms_norm)
