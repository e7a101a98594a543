"""LayerNorm as flag_gems.layer_norm and layer_norm_backward: ATen's native_layer_norm and its backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends.base import PythonFunction
from backends.flag_gems import _package
from backends.flag_gems.joined import joined


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The rows of input normalised over its last dimensions, `normalized_shape`; of the shape of input."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    shape = list(normalized_shape)

    def forward(x: Tensor, w: Tensor | None, b: Tensor | None) -> Any:
        return _package.flag_gems.layer_norm(x, shape, w, b, eps)

    def backward(
        tensors: Sequence[Tensor | None], kept: Sequence[Tensor], cotangent: Tensor, wanted: Sequence[bool]
    ) -> Any:
        x, w, b = tensors
        return _package.flag_gems.layer_norm_backward(cotangent, x, shape, *kept, w, b, list(wanted))

    return joined(forward, backward, input, weight, bias)


IMPLEMENTATION = PythonFunction(layer_norm)
