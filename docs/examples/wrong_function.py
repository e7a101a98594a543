"""LLTM with one mistake that raises no error: tanh in place of elu."""

import torch
import torch.nn.functional as F
from torch import Tensor


def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a cell that is not quite LLTM."""
    gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)
    in_gate, out_gate, candidate = gates.chunk(3, dim=1)
    new_cell = old_cell + torch.sigmoid(in_gate) * torch.tanh(candidate)
    new_h = torch.sigmoid(out_gate) * torch.tanh(new_cell)
    return new_h, new_cell
