"""The logarithm of softmax in torch operations; autograd derives the gradient.

Half types are computed in float32, and rounded once, at the end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rows
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.log_softmax import OPERATOR


@by_rule(OPERATOR)
def log_softmax(input: Tensor) -> Tensor:
    """The logarithm of the softmax of each row, the last dimension; of the shape of input."""
    check_rows("log_softmax", "input", input)
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True) if x.shape[-1] else x
    return (shifted - shifted.exp().sum(-1, keepdim=True).log()).to(input.dtype)


IMPLEMENTATION = PythonFunction(log_softmax)
