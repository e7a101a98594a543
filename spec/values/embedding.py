"""Values of an embedding: indices that meet often or never, and entries that only their bits tell apart."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, ordinary


def _one_entry(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["indices"].fill_(0)


def _two_entries(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    shape, last = tuple(drawn["indices"].shape), len(drawn["weight"]) - 1
    drawn["indices"] = draw.integers(shape, 0, 2) * last


def _backwards(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    indices = drawn["indices"]
    entries = torch.arange(indices.numel() - 1, -1, -1) % max(len(drawn["weight"]), 1)
    drawn["indices"] = entries.view(indices.shape)


def _bits(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
    info, rows = torch.finfo(dtype), drawn["weight"]
    for row, value in enumerate((-0.0, info.tiny, -info.max)[: len(rows)]):
        rows[row] = value


CHANGES: dict[str, tuple[str, Change]] = {
    "one-entry": ("all indices 0: one row of the gradient has all terms", _one_entry),
    "two-entries": ("the first and the last entry alone", _two_entries),
    "backwards": ("falling indices, each entry equally often", _backwards),
    "bits": ("rows of -0, the smallest normal and the lowest number, which are copied", _bits),
}


def copied(inputs: Sequence[TensorArg]) -> Invariant:
    """A table with zeros of both signs."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["weight"][::2] *= 0.0
        return drawn

    claim = "the output has the bits of the rows of the table"
    return Invariant("copied", claim, make, lambda weight, indices: {"output": weight[indices]}, bitwise=True)
