"""Right, but in another precision or with reused memory: the plain cell and variants with casts."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs, elementwise, plain, rounded, wide
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Cell):
    """The honest cell, the base of every fault."""


@control
def plain_function(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Plain torch with autograd's own backward."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return plain(input, weights, bias, old_h, old_cell)


@control
def everything_in_float64(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return rounded(input.dtype, *plain(*(t.double() for t in (input, weights, bias, old_h, old_cell))))


@control
def float32_throughout(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Half types are computed in float32, the product included, and rounded once."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return rounded(input.dtype, *plain(*wide(input, weights, bias, old_h, old_cell)))


@control
def gates_in_place(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The bias and the old cell are added in place to intermediate results."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    (gates,) = wide(torch.cat([old_h, input], dim=1) @ weights.t())
    gates.add_(bias)
    z_i, z_o, z_k = gates.chunk(3, dim=1)
    new_cell = (F.elu(z_k) * torch.sigmoid(z_i)).add_(old_cell)
    return rounded(input.dtype, torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell)


@control
def states_in_one_tensor(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Hidden state and cell are two halves of one tensor; the outputs are copies of the new halves."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    old_state = torch.stack([old_h, old_cell])
    z_i, z_o, z_k = F.linear(torch.cat([old_state[0], input], dim=1), weights, bias).chunk(3, dim=1)
    new_state = torch.stack(elementwise(z_i, z_o, z_k, old_state[1]))
    # Without copies the outputs would share a storage.
    return new_state[0].clone(), new_state[1].clone()
