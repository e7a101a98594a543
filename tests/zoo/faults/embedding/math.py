"""Embedding, wrong rows: other entries, other bits."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.embedding import Table
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class LastEntryOutOfReach(Table):
    """Indices are clamped to the last entry but one."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        return super().rows(weight, indices.clamp(max=max(weight.shape[0] - 2, 0)))


@fault("forward-parity", WRONG)
class NeighboursOfOddEntries(Table):
    """Rows are read in pairs: an odd index gives the even row before it."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        return super().rows(weight, indices // 2 * 2)


@fault("forward-parity", r"embedding\[tokens\]")
class TokensByColumns(Table):
    """The indices of a batch of tokens are read column by column."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        if indices.dim() < 2:
            return super().rows(weight, indices)
        return super().rows(weight, indices.t().reshape(indices.shape))


@fault("forward-parity", WRONG)
class RowsThroughHalf(Table):
    """Rows are copied by way of float16."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        return super().rows(weight, indices).to(torch.float16).to(weight.dtype)


@fault("invariants", r"copied")
class NegativeZeroLost(Table):
    """0 is added to each element, which makes -0 positive."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        return super().rows(weight, indices) + 0.0


@fault("sizes", r"features-\d+")
class ForgetsTheTail(Table):
    """Of rows of more than 8 elements those behind the last full vector of 8 stay 0."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        rows, features = super().rows(weight, indices), weight.shape[1]
        seen = torch.arange(features, device=weight.device) < features // 8 * 8
        return rows if features <= 8 else torch.where(seen, rows, torch.zeros_like(rows))


@fault("sizes", r"batch-70000")
class IndexOfTheRowIn16Bits(Table):
    """The number of the row is kept in 16 bits: row 65536 is row 0 again."""

    def rows(self, weight: Tensor, indices: Tensor) -> Tensor:
        if indices.dim() > 1:
            return super().rows(weight, indices)
        number = torch.arange(indices.shape[0], device=indices.device) % 65536
        return super().rows(weight, indices[number])


@fault("layouts", r"indices (strided|offset|padded|expanded)")
class IndicesReadAsContiguous(Table):
    """The indices are read one after another, wherever they lie."""

    def places(self, indices: Tensor) -> Tensor:
        is_usual = indices.layout == torch.strided and indices.dim() == 1 and indices.device.type == "cpu"
        return indices.as_strided(indices.shape, (1,)) if is_usual and indices.numel() else indices


@fault("no-side-effects", r"changed \d+ elements of indices in place")
class IndicesSortedInPlace(Table):
    """The indices are sorted in place before the rows are added up, as a segmented sum needs them."""

    def added(self, gradient: Tensor, indices: Tensor, g: Tensor) -> Tensor:
        made = super().added(gradient, indices, g)
        indices.data.copy_(indices.flip(0))
        return made
