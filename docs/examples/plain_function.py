"""A candidate in plain torch: any function with the contract's signature will do."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from spec.lltm import OPERATOR


@by_rule(OPERATOR)  # under torch.autocast
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell. It multiplies state and input separately; the reference joins them first."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)  # or your own checks that name the argument
    state_size = old_h.shape[1]
    old_h, input = old_h.contiguous(), input.contiguous()  # in bfloat16, oneDNN reads the padding between rows
    gates = F.linear(old_h, weights[:, :state_size], bias) + F.linear(input, weights[:, state_size:])
    in_gate, out_gate, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + torch.sigmoid(in_gate) * F.elu(candidate)
    new_h = torch.sigmoid(out_gate) * torch.tanh(new_cell)
    return new_h, new_cell
