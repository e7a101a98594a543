"""The logarithm of softmax as torch.log_softmax."""

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
    return torch.log_softmax(input, -1)


IMPLEMENTATION = PythonFunction(log_softmax)
