"""LayerNorm: a composition of torch operations under torch.compile, which fuses it into one pass over the rows.

Half types are normalised in float32, and rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_compile._compiled import compiled
from spec.layer_norm import OPERATOR


def _forward(input: Tensor, dimensions: int, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    dims = tuple(range(-dimensions, 0))
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    centred = x - x.mean(dims, keepdim=True)
    output = centred * torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    if weight is not None:
        output = output * weight
    if bias is not None:
        output = output + bias
    return output.to(input.dtype)


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
    output: Tensor = compiled(_forward)(input, len(normalized_shape), weight, bias, eps)
    return output


IMPLEMENTATION = PythonFunction(layer_norm)
