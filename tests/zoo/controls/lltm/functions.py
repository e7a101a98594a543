"""Right, but with other formulae for the activations, in float32 or wider."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, rounded, wide
from tests.zoo.registry import control


def _gates(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, ...]:
    """The pre-activations of the three gates and the old cell, in float32 or wider."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    z, c = wide(F.linear(torch.cat([old_h, input], dim=1), weights, bias), old_cell)
    return *z.chunk(3, dim=1), c


@control
def sigmoid_by_tanh(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """sigmoid(z) = (1 + tanh(z/2)) / 2, as many kernels write it."""
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    i, o = 0.5 + 0.5 * torch.tanh(z_i / 2), 0.5 + 0.5 * torch.tanh(z_o / 2)
    new_cell = c + F.elu(z_k) * i
    return rounded(input.dtype, torch.tanh(new_cell) * o, new_cell)


@control
def sigmoid_by_its_logarithm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """sigmoid(z) = exp(logsigmoid(z)), in which no exponential overflows."""
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    new_cell = c + F.elu(z_k) * F.logsigmoid(z_i).exp()
    return rounded(input.dtype, torch.tanh(new_cell) * F.logsigmoid(z_o).exp(), new_cell)


@control
def where_and_expm1(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """elu written out with expm1 and where, guarded so that the branch not taken has a finite derivative.

    In float32 or wider: the derivative of expm1 is 1 + expm1(z), which float16 rounds to 0 from -8 on.
    """
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    # At 0 the slope is that of expm1, which is 1, as in PyTorch's elu.
    negative = torch.where(z_k > 0, torch.zeros_like(z_k), z_k)
    candidate = torch.where(z_k > 0, z_k, torch.expm1(negative))
    new_cell = c + candidate * torch.sigmoid(z_i)
    return rounded(input.dtype, torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell)


@control
def relu_and_expm1(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """elu(z) = relu(z) + expm1(min(z, 0)): no branch at all."""
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    # At 0 relu has slope 0 and clamp 1: together 1, as in PyTorch's elu.
    candidate = F.relu(z_k) + torch.expm1(z_k.clamp(max=0))
    new_cell = c + candidate * torch.sigmoid(z_i)
    return rounded(input.dtype, torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell)


@control
def multiplied_and_added_at_once(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> Outputs:
    """old_cell + candidate * gate is one addcmul, which may round once; celu with alpha 1 is elu."""
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    new_cell = torch.addcmul(c, F.celu(z_k, alpha=1.0), torch.sigmoid(z_i))
    return rounded(input.dtype, torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell)


@control
def another_form_without_grad(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Without grad, sigmoid is computed by tanh: right, but other bits than in training."""
    z_i, z_o, z_k, c = _gates(input, weights, bias, old_h, old_cell)
    trains = torch.is_grad_enabled()
    i, o = (torch.sigmoid(z) if trains else 0.5 + 0.5 * torch.tanh(z / 2) for z in (z_i, z_o))
    new_cell = c + F.elu(z_k) * i
    return rounded(input.dtype, torch.tanh(new_cell) * o, new_cell)
