"""MLP under torch.compile."""

import torch
import torch.nn.functional as F


@torch.compile
def mlp(input, hidden_weights, hidden_bias, output_weights, output_bias):
    return F.linear(F.relu(F.linear(input, hidden_weights, hidden_bias)), output_weights, output_bias)
