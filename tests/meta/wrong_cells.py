"""Functions for `--candidate`: a right one, and the usual mistakes in LLTM.

Loaded as a file by `test_command_line.py`, in a separate process.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell, Outputs


def right(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Plain torch, arguments checked."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return _plain(input, weights, bias, old_h, old_cell)


def _plain(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def expands_bias(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A bias of one element is expanded to all."""
    wide = bias.expand(weights.shape[0]) if bias.shape == (1,) else bias
    return right(input, weights, wide, old_h, old_cell)


class _SwappedGates(Cell):
    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        z_i, z_o, z_k = super().split(gates)
        return z_o, z_i, z_k


class _NoCellCotangent(Cell):
    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return g_h, torch.zeros_like(g_c)


class _FlatAtZero(Cell):
    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return torch.where(z > 0, 1.0, torch.where(z < 0, torch.exp(z.clamp(max=0)), 0.0))


class _InPlace(Cell):
    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        with torch.no_grad():
            old_cell.copy_(new_cell)
        return new_h, new_cell


class _BiasOfOneRow(Cell):
    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates[0]


class _NoStrides(Cell):
    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        return super().__call__(*(self._as_if_contiguous(tensor) for tensor in inputs))

    def _as_if_contiguous(self, tensor: Tensor) -> Tensor:
        return tensor if tensor.is_contiguous() else _Misread.apply(tensor)


class _Misread(torch.autograd.Function):
    """The adjacent elements from the first on, as read by a kernel that ignores strides."""

    @staticmethod
    def forward(_: Any, tensor: Tensor) -> Tensor:
        flat = torch.as_strided(tensor, (tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0)
        index = (tensor.storage_offset() + torch.arange(tensor.numel())) % flat.numel()
        return flat[index].view(tensor.shape)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return gradient


class _InputAlone(Cell):
    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        d_input, *others = super().wanted(gradients, needs)
        return (d_input if any(needs[3:]) else None, *others)


# A candidate has the name of its attribute, so each is an attribute.
swapped_gates = _SwappedGates()
no_cell_cotangent = _NoCellCotangent()
flat_at_zero = _FlatAtZero()
changes_old_cell = _InPlace()
bias_of_one_row = _BiasOfOneRow()
ignores_strides = _NoStrides()
forgets_input_alone = _InputAlone()
