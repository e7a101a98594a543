"""Rotary embedding, right but different: each control must pass every property that `gives_up` does not name."""

import torch
from torch import Tensor

from backends.base import check_arguments
from spec.rotary import OPERATOR
from tests.zoo.honest.rotary import Rotation
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Rotation):
    """The honest rotation, the base of every fault."""


@control
def in_the_dtype(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """x cos + rotate_half(x) sin in the dtype, each product rounded, as transformers computes it."""
    check_arguments(OPERATOR, input, cos, sin)
    if interleaved:
        rotated = torch.stack((-input[..., 1::2], input[..., ::2]), -1).flatten(-2)
        tables = [table.repeat_interleave(2, -1).unsqueeze(1) for table in (cos, sin)]
    else:
        half = cos.shape[1]
        rotated = torch.cat((-input[..., half:], input[..., :half]), -1)
        tables = [torch.cat((table, table), -1).unsqueeze(1) for table in (cos, sin)]
    return input * tables[0] + rotated * tables[1]


@control
def everything_in_float64(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_arguments(OPERATOR, input, cos, sin)
    x, c, s = input.double(), cos.double().unsqueeze(1), sin.double().unsqueeze(1)
    half = cos.shape[1]
    x1, x2 = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    pair = (x1 * c - x2 * s, x1 * s + x2 * c)
    return (torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)).to(input.dtype)


@control
def by_a_matrix(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Each pair is multiplied by a matrix of two rows."""
    check_arguments(OPERATOR, input, cos, sin)
    wide = torch.promote_types(input.dtype, torch.float32)
    x, c, s = input.to(wide), cos.to(wide), sin.to(wide)
    batch, tokens, heads, width = input.shape
    pairs = x.view(batch, tokens, heads, width // 2, 2) if interleaved else x.unflatten(-1, (2, -1)).mT
    matrix = torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2).unsqueeze(1)
    turned = (matrix * pairs.unsqueeze(-2)).sum(-1)
    return (turned if interleaved else turned.mT).flatten(-2).to(input.dtype)
