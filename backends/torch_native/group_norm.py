"""GroupNorm as torch.group_norm, which F.group_norm calls."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.group_norm import check_group_norm_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from spec.group_norm import OPERATOR


@by_rule(OPERATOR)
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """The channels of input normalised in `num_groups` groups; of the shape of input."""
    check_group_norm_arguments(input, num_groups, weight, bias)
    # Not F.group_norm: it refuses a batch of one whose groups have one element each.
    return torch.group_norm(input, num_groups, weight, bias, eps)


IMPLEMENTATION = PythonFunction(group_norm)
