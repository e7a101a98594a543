"""Softmax: torch operations under torch.compile, which fuses them into passes over the rows."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rows
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.softmax import OPERATOR


def _forward(input: Tensor) -> Tensor:
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    exponentials = (x - x.amax(-1, keepdim=True) if x.shape[-1] else x).exp()
    return (exponentials / exponentials.sum(-1, keepdim=True)).to(input.dtype)


@by_rule(OPERATOR)
def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)
    output: Tensor = compiled(_forward)(input)
    return output


IMPLEMENTATION = PythonFunction(softmax)
