"""LLTM over a sequence in plain torch: a loop of cells, with the input's part of all gates in one product before it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from spec.lltm_sequence import OPERATOR


@by_rule(OPERATOR)
def lltm_sequence(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor]:
    """(h, c_T), of shapes (steps, batch, state_size) and (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    state_size = h0.shape[1]
    # Made dense, since oneDNN's products in bfloat16 read beyond the end of a row (torch 2.13).
    of_h, of_input = weights[:, :state_size].contiguous(), weights[:, state_size:].contiguous()
    from_input = F.linear(input.contiguous(), of_input, bias)  # (steps, batch, 3*state_size)
    h, cell, states = h0.contiguous(), c0.clone(), []
    for t in range(input.shape[0]):
        input_gate, output_gate, candidate = torch.addmm(from_input[t], h, of_h.t()).chunk(3, dim=1)
        cell = cell + F.elu(candidate) * torch.sigmoid(input_gate)
        h = torch.tanh(cell) * torch.sigmoid(output_gate)
        states.append(h)
    # Without steps, h is an empty tensor. It still belongs to the graph of the inputs.
    return torch.stack(states) if states else from_input[..., :state_size] + h0, cell


IMPLEMENTATION = PythonFunction(lltm_sequence)
