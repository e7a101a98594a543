"""Softmax as quack.softmax, of a matrix."""

from __future__ import annotations

import math

from torch import Tensor

from backends._python.rows import check_rows
from backends.base import PythonFunction
from backends.quack import _package


def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)
    matrix = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    output: Tensor = _package.softmax(matrix).reshape(input.shape)
    return output


IMPLEMENTATION = PythonFunction(softmax)
