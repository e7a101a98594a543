"""The logarithm of softmax as flag_gems.log_softmax and log_softmax_backward: ATen's _log_softmax and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from backends._python.rows import check_rows
from backends.base import PythonFunction
from backends.flag_gems import _package
from backends.flag_gems.joined import joined


def log_softmax(input: Tensor) -> Tensor:
    """The logarithm of the softmax of each row, the last dimension; of the shape of input."""
    check_rows("log_softmax", "input", input)

    def forward(x: Tensor) -> Any:
        output = _package.flag_gems.log_softmax(x, -1)
        return output, output

    def backward(_: Any, kept: Sequence[Tensor], cotangent: Tensor, _wanted: Sequence[bool]) -> Any:
        (output,) = kept
        return (_package.flag_gems.log_softmax_backward(cotangent, output, -1, output.dtype),)

    return joined(forward, backward, input)


IMPLEMENTATION = PythonFunction(log_softmax)
