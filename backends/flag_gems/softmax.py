"""Softmax as flag_gems.softmax and softmax_backward: ATen's _softmax and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from backends._python.rows import check_rows
from backends.base import PythonFunction
from backends.flag_gems import _package
from backends.flag_gems.joined import joined


def softmax(input: Tensor) -> Tensor:
    """The softmax of each row, the last dimension; of the shape of input."""
    check_rows("softmax", "input", input)

    def forward(x: Tensor) -> Any:
        output = _package.flag_gems.softmax(x, -1)
        return output, output

    def backward(_: Any, kept: Sequence[Tensor], cotangent: Tensor, _wanted: Sequence[bool]) -> Any:
        (output,) = kept
        return (_package.flag_gems.softmax_backward(cotangent, output, -1, output.dtype),)

    return joined(forward, backward, input)


IMPLEMENTATION = PythonFunction(softmax)
