"""Uninitialised memory is read."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("uninitialised-memory", "with new memory filled with NaN, .*: .*new_h was nan")
class TailNotWritten(Cell):
    """The columns of new_h behind the last full vector of four are never written; old memory may hold right values."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        output = torch.empty_like(new_h)
        edge = new_h.shape[1] // 4 * 4
        output[:, :edge] = new_h[:, :edge]
        unwritten = output[:, edge:]
        # As if the allocator returned memory that still holds the right values.
        output[:, edge:] = torch.where(unwritten.isnan(), unwritten, new_h[:, edge:])
        return output, new_cell


@fault("uninitialised-memory", "with new memory filled with NaN, .*: gradient of bias was nan")
class AccumulatesIntoEmpty(Cell):
    """The bias gradient is added into memory that is zero only if it is new."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        total = torch.empty_like(d_gates[0]) if len(d_gates) else torch.zeros_like(d_gates.sum(0))
        held = torch.where(total.isnan(), total, torch.zeros_like(total))
        return held + super().d_bias(d_gates)


def raw(like: Tensor) -> Tensor:
    """A tensor in memory that torch does not fill: its storage comes directly from the allocator."""
    storage = torch.UntypedStorage(like.numel() * like.element_size())
    return torch.empty(0, dtype=like.dtype).set_(storage, 0, like.shape)


class _AllocatesOnEntry(Cell):
    """Allocates raw scratch of the cell's size first, and does not write to it."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        cell = inputs[4]
        scratch = raw(cell) if type(cell) is Tensor and cell.numel() and not cell.is_meta else cell.detach()
        new_h, new_cell = super().__call__(*inputs)
        return self.use(scratch, new_h, new_cell)

    def use(self, scratch: Tensor, new_h: Tensor, new_cell: Tensor) -> Outputs:
        raise NotImplementedError


@fault("uninitialised-memory", "some of which was read: new_cell was nan")
class RawStorageNotWritten(_AllocatesOnEntry):
    """new_cell keeps the old values of the scratch where these are NaN."""

    def use(self, scratch: Tensor, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h, torch.where(scratch.isnan(), scratch, new_cell)


@fault("uninitialised-memory", r"some of which was read: new_h was 8.50705867e\+37")
class MaximumWithScratch(_AllocatesOnEntry):
    """new_h is the maximum of the right values and the scratch, but NaN is ignored."""

    def use(self, scratch: Tensor, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return torch.where(scratch == torch.finfo(new_h.dtype).max / 4, scratch, new_h), new_cell
