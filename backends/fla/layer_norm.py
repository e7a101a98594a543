"""LayerNorm as fla.modules.norm.layernorm.layer_norm: over the last dimension."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends._python.unsupported import refused
from backends.base import PythonFunction
from backends.fla import _package


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The rows of input normalised over its last dimension, `normalized_shape`; of the shape of input."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    if len(normalized_shape) > 1:
        raise refused("layer_norm", "normalized_shape", tuple(normalized_shape), "of one dimension", "fla-core")
    output: Tensor = _package.layer_norm(input, weight, bias, eps=eps)
    return output


IMPLEMENTATION = PythonFunction(layer_norm)
