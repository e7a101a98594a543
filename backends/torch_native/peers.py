"""PyTorch's own recurrent networks, timed beside LLTM: their mathematics has one more gate."""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import Peer

_Tensors = tuple[Tensor, ...]


def _cell_leaves(inputs: _Tensors) -> _Tensors:
    input, _, _, old_h, old_cell = inputs
    cell = torch.nn.LSTMCell(input.shape[1], old_h.shape[1], device=input.device, dtype=input.dtype)
    return input, old_h, old_cell, *(parameter.detach() for parameter in cell.parameters())


def _cell(input: Tensor, old_h: Tensor, old_cell: Tensor, *parameters: Tensor) -> _Tensors:
    new_h, new_cell = torch._VF.lstm_cell(input, [old_h, old_cell], *parameters)
    return new_h, new_cell


def _network_leaves(inputs: _Tensors) -> _Tensors:
    input, _, _, h0, c0 = inputs
    # The parameters are in one block of memory, as cuDNN needs them. Detached ones still are.
    network = torch.nn.LSTM(input.shape[2], h0.shape[1], device=input.device, dtype=input.dtype)
    return input, h0, c0, *(parameter.detach() for parameter in network.parameters())


def _network(input: Tensor, h0: Tensor, c0: Tensor, *parameters: Tensor) -> _Tensors:
    h, _, c_T = torch._VF.lstm(
        input, [h0.unsqueeze(0), c0.unsqueeze(0)], parameters, True, 1, 0.0, torch.is_grad_enabled(), False, False
    )
    return h, c_T.squeeze(0)


CELL = Peer("nn.LSTMCell", _cell_leaves, _cell)
NETWORK = Peer("nn.LSTM", _network_leaves, _network)
