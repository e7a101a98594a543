"""LayerNorm as F.layer_norm, one fused kernel of PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.layer_norm import OPERATOR


@by_rule(OPERATOR)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The rows of input normalised over its last dimensions, `normalized_shape`; of the shape of input."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    return F.layer_norm(input, list(normalized_shape), weight, bias, eps)


IMPLEMENTATION = PythonFunction(layer_norm)
