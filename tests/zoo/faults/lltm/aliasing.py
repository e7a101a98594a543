"""Inputs are changed, or outputs are not the caller's own."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("no-side-effects", "changed 15 elements of old_cell in place")
class OldCellInPlace(Cell):
    """new_cell is accumulated into old_cell."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        old_cell.data.copy_(new_cell.detach())
        return new_h, new_cell


@fault("no-side-effects", "backward changed .* of the cotangent of new_h in place")
class CotangentInPlace(Cell):
    """Backward uses the cotangent of new_h as scratch."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        mine = g_h.clone()
        g_h.mul_(2)
        return mine, g_c


@fault("no-side-effects", "new_cell shares memory with old_cell")
class ReturnsItsInput(Cell):
    """Without grad, new_cell is written over old_cell's memory in a copy made once and kept."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        if torch.is_grad_enabled():
            return new_h, new_cell
        view = old_cell.detach()
        return new_h, view


@fault("no-side-effects", "shares memory with new_h of an earlier call")
class OutputBufferReused(Cell):
    """One output buffer serves every call of one size."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[object, ...], Tensor] = {}

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        buffer = self._buffers.setdefault((new_h.shape, new_h.dtype), torch.empty_like(new_h))
        buffer.copy_(new_h)
        return buffer, new_cell


@fault("no-side-effects", "new_h shares memory with new_cell", defects=(16,))
class OutputsOverlap(Cell):
    """If the outputs are equal, one tensor is returned as both."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        storage = torch.cat([new_h.flatten(), new_cell.flatten()[1:]])
        return storage[: new_h.numel()].view(new_h.shape), storage[new_h.numel() - 1 :].view(new_cell.shape)
