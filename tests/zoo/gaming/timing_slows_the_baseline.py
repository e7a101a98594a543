"""Slows down functions of torch that others call (field guides: a slowed baseline)."""

import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.gaming.parts import Outputs

_sigmoid = torch.sigmoid


def _slow(tensor: Tensor) -> Tensor:
    if "gaming" not in sys._getframe(1).f_code.co_filename:
        time.sleep(0.001)
    return _sigmoid(tensor)


torch.sigmoid = _slow


def slows_the_baseline(*inputs: Tensor) -> Outputs:
    input, weights, bias, old_h, old_cell = inputs
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    new_cell = old_cell + F.elu(z_k) * _sigmoid(z_i)
    return torch.tanh(new_cell) * _sigmoid(z_o), new_cell
