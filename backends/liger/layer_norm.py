"""LayerNorm as liger_layer_norm: over the last dimension, with a weight."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from liger_kernel.transformers.functional import liger_layer_norm
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends._python.unsupported import refused
from backends.base import PythonFunction


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
        raise refused("layer_norm", "normalized_shape", tuple(normalized_shape), "of one dimension", "liger-kernel")
    if weight is None:
        raise refused("layer_norm", "weight", None, "a tensor", "liger-kernel")
    # Zeros, as liger_kernel.functional.layer_norm passes where there is no bias.
    output: Tensor = liger_layer_norm(input, weight, torch.zeros_like(weight) if bias is None else bias, eps)
    return output


IMPLEMENTATION = PythonFunction(layer_norm)
