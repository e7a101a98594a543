"""GroupNorm, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.group_norm import check_group_norm_arguments, per_channel
from tests.zoo.honest.group_norm import Groups, Optional
from tests.zoo.registry import OLD_STYLE, control


def _wide(tensor: Optional) -> Optional:
    return tensor if tensor is None else tensor.to(torch.promote_types(tensor.dtype, torch.float32))


@control(gives_up=OLD_STYLE)
class Honest(Groups):
    """The honest normalisation, the base of every fault."""


@control
def as_layer_norm(
    input: Tensor, num_groups: int, weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """F.layer_norm of the groups as rows, in float32 for half types; weight and bias come after it."""
    check_group_norm_arguments(input, num_groups, weight, bias)
    x = _wide(input)
    rows = x.reshape(x.shape[0] * num_groups, -1) if x.numel() else x
    output = F.layer_norm(rows, rows.shape[-1:], eps=eps).view(x.shape) if x.numel() else x * 1
    output = output if weight is None else output * per_channel(_wide(weight), x)
    return (output if bias is None else output + per_channel(_wide(bias), x)).to(input.dtype)


@control
def everything_in_float64(
    input: Tensor, num_groups: int, weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_group_norm_arguments(input, num_groups, weight, bias)
    wide = [tensor if tensor is None else tensor.double() for tensor in (input, weight, bias)]
    return torch.group_norm(wide[0], num_groups, wide[1], wide[2], eps).to(input.dtype)


@control
def scale_and_shift(
    input: Tensor, num_groups: int, weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """One product and one sum for each element, x (rstd w) + (b - mean rstd w), as kernels do."""
    check_group_norm_arguments(input, num_groups, weight, bias)
    x = _wide(input)
    groups = x.unflatten(1, (num_groups, x.shape[1] // num_groups)).flatten(2)
    mean = groups.mean(-1)
    rstd = torch.rsqrt((groups - mean.unsqueeze(-1)).square().mean(-1) + eps)
    a, m = (each.repeat_interleave(x.shape[1] // num_groups, 1) for each in (rstd, mean))  # (batch, channels)
    a = a if weight is None else a * _wide(weight)
    b = -m * a if bias is None else _wide(bias) - m * a
    shape = (*a.shape, *(1 for _ in x.shape[2:]))
    return (x * a.view(shape) + b.view(shape)).to(input.dtype)


@control(gives_up=OLD_STYLE)
class StatisticsOfChannelsMerged(Groups):
    """The sums of each half of a group first, then their sum: another order of summation."""

    def mean(self, groups: Tensor) -> Tensor:
        half = groups.shape[-1] // 2
        total = groups[..., :half].sum(-1, keepdim=True) + groups[..., half:].sum(-1, keepdim=True)
        return total / groups.shape[-1]


@control(gives_up=OLD_STYLE)
class BackwardInOneSum(Groups):
    """The bracket of d_input subtracts one sum, of h (1 + xhat_i xhat_j), divided by N at the end."""

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        count = max(h.shape[-1], 1)
        total = h.sum(-1, keepdim=True) + xhat * (h * xhat).sum(-1, keepdim=True)
        return rstd * (h * count - total) / count
