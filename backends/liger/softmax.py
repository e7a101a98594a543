"""Softmax as liger_softmax."""

from __future__ import annotations

from liger_kernel.transformers.functional import liger_softmax
from torch import Tensor

from backends._python.rows import check_rows
from backends.base import PythonFunction


def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)
    output: Tensor = liger_softmax(input)
    return output


IMPLEMENTATION = PythonFunction(softmax)
