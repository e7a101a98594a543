"""The logarithm of softmax: torch operations under torch.compile, which fuses them into passes over the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rows
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.log_softmax import OPERATOR


def _forward(input: Tensor) -> Tensor:
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    shifted = x - x.amax(-1, keepdim=True) if x.shape[-1] else x
    return (shifted - shifted.exp().sum(-1, keepdim=True).log()).to(input.dtype)


@by_rule(OPERATOR)
def log_softmax(input: Tensor) -> Tensor:
    """The logarithm of the softmax of each row, the last dimension; of the shape of input."""
    check_rows("log_softmax", "input", input)
    output: Tensor = compiled(_forward)(input)
    return output


IMPLEMENTATION = PythonFunction(log_softmax)
