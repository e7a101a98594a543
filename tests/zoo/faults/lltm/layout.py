"""Memory is read or written at addresses other than those of the strides."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


def read_densely(tensor: Tensor) -> Tensor:
    """The values that a kernel reads if it takes the pointer and assumes that the tensor is contiguous."""
    reach = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    flat = tensor.detach().as_strided((reach,), (1,))
    return flat[torch.arange(tensor.numel()) % reach].view(tensor.shape)


@fault("layouts", "the strides of old_cell are ignored")
class StridesOfCellIgnored(Cell):
    """old_cell is read as if it were contiguous."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        dense = old_cell + (read_densely(old_cell) - old_cell.detach())
        return super().__call__(input, weights, bias, old_h, dense)


@fault("layouts", "the strides of weights are ignored")
class StridesOfWeightsIgnored(Cell):
    """weights is read as if it were contiguous."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return super().gates(input, read_densely(weights), bias, old_h)


@fault("layouts", "the strides of the cotangent of new_h are ignored", defects=(7,))
class ExpandedCotangentRead(Cell):
    """The cotangent of new_h is read densely: `.sum().backward()` sends one number with stride 0."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        reach = g_h.untyped_storage().nbytes() // g_h.element_size() - g_h.storage_offset()
        if reach < g_h.numel():  # beyond the one number there is other memory; here, zeros
            flat = torch.cat([g_h.detach().as_strided((reach,), (1,)), g_h.new_zeros(g_h.numel() - reach)])
            return flat.view(g_h.shape), g_c
        return read_densely(g_h), g_c


@fault("layouts", "the strides of the cotangent of new_cell are ignored", defects=(7,))
class TransposedCotangentRead(Cell):
    """The cotangent of new_cell is read densely."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return g_h, read_densely(g_c)


@fault("layouts", "strides of bias are ignored|bias strided")
class BiasStrideIgnored(Cell):
    """bias is read as if its elements were adjacent."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return super().gates(input, weights, read_densely(bias), old_h)


@fault("layouts", "new_h was nan.*weights padded[^$]*the padding between rows is read and multiplied by 0")
class PaddingTimesZero(Cell):
    """Rows of weights are read in tiles of 32; the padding behind their end is multiplied by 0, and 0 * NaN is NaN."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        rows, columns = weights.shape
        behind = min(weights.stride(0) - columns, -columns % 32)
        if weights.stride(1) != 1 or behind <= 0:
            return super().gates(input, weights, bias, old_h)
        tiles = weights.as_strided((rows, columns + behind), weights.stride())
        return F.linear(F.pad(self.concatenated(input, old_h), (0, behind)), tiles, bias)


@fault("layouts", "forward raised RuntimeError: .*misaligned")
class AlignmentAssumed(Cell):
    """16-byte loads from any address: a tensor that starts one element into its storage is a misaligned access."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return super().new_cell(old_cell, candidate, input_gate)

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        if old_cell.data_ptr() % 16:
            raise RuntimeError("CUDA error: misaligned address")
        return super().__call__(input, weights, bias, old_h, old_cell)


@fault("wide-offsets", "old_cell|new_h|new_cell", defects=(12,))
class OffsetsOf32Bits(Cell):
    """Row offsets of old_cell are computed in 32 bits and wrap around."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        rows = []
        for row in range(old_cell.shape[0]):
            offset = (row * old_cell.stride(0) + 2**31) % 2**32 - 2**31
            inside = offset >= 0
            flat = old_cell.as_strided((old_cell.shape[1],), (old_cell.stride(1),), offset if inside else 0)
            rows.append(flat if inside else torch.zeros_like(flat))
        return super().__call__(input, weights, bias, old_h, torch.stack(rows))


@fault("wide-offsets", "new_h|new_cell", defects=(12,))
class ColumnOffsetsOf32Bits(Cell):
    """Only the rows decide whether 64-bit offsets are needed: columns of old_cell that are far apart are misread."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        distance = old_cell.stride(1)
        columns = [
            column if number * distance < 2**31 else torch.zeros_like(column)
            for number, column in enumerate(old_cell.unbind(1))
        ]
        return super().__call__(input, weights, bias, old_h, torch.stack(columns, dim=1) if columns else old_cell)
