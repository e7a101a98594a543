"""Six lines, as anybody writes them."""

import torch
import torch.nn.functional as F


def lltm(input, weights, bias, old_h, old_cell):
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, 1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell
