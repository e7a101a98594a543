"""Softmax as torch.softmax."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.rows import check_rows
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.softmax import OPERATOR


@by_rule(OPERATOR)
def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)
    return torch.softmax(input, -1)


IMPLEMENTATION = PythonFunction(softmax)
