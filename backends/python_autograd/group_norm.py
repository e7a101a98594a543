"""GroupNorm in torch operations; autograd derives the gradient.

Half types are normalised in float32, and rounded once, at the end.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from backends._python.group_norm import check_group_norm_arguments, per_channel
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.group_norm import OPERATOR


@by_rule(OPERATOR)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """The channels of input normalised in `num_groups` groups; of the shape of input."""
    check_group_norm_arguments(input, num_groups, weight, bias)
    x = input.to(torch.promote_types(input.dtype, torch.float32))
    groups = x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    centred = groups - groups.mean(-1, keepdim=True)
    output = (centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)).view(x.shape)
    if weight is not None:
        output = output * per_channel(weight, input)
    if bias is not None:
        output = output + per_channel(bias, input)
    return output.to(input.dtype)


IMPLEMENTATION = PythonFunction(group_norm)
