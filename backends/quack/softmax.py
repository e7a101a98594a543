"""Softmax as quack.softmax, of a matrix."""

from __future__ import annotations

import math

from quack import softmax as of_matrix
from torch import Tensor

from backends._python.rows import check_rows
from backends.base import PythonFunction


def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)
    matrix = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    output: Tensor = of_matrix(matrix).reshape(input.shape)
    return output


IMPLEMENTATION = PythonFunction(softmax)
