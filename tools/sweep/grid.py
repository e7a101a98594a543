"""What is swept: the sizes of each operator, and what torch.compile compiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from spec import lltm
from spec.contract import Case

Point = tuple[int, int]


@dataclass(frozen=True)
class Grid:
    """Sizes of two symbols, the axes of the picture. `others` are equal to one of them.

    A point has at most `most` products of the two.
    """

    operator: str
    rows: tuple[str, tuple[int, ...]]
    columns: tuple[str, tuple[int, ...]]
    reference: Callable[..., Any]
    others: tuple[tuple[str, str], ...] = ()
    most: int = 2**29

    def cases(self, points: Sequence[Point] = ()) -> Iterator[Case]:
        """One case for each of `points`, in their order; without them, for each point that is not too large."""
        (row, row_sizes), (column, column_sizes) = self.rows, self.columns
        every = [point for point in product(row_sizes, column_sizes) if point[0] * point[1] <= self.most]
        for of_row, of_column in points or every:
            sizes = {row: of_row, column: of_column}
            sizes |= {symbol: sizes[same] for symbol, same in self.others}
            yield Case(f"{of_row}x{of_column}", sizes, "a point of the sweep")


def _layer_norm(input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(input, (input.shape[-1],), weight, bias)


GRIDS = {
    grid.operator: grid
    for grid in (
        Grid(
            "layer_norm",
            ("batch", (1, 64, 1024, 8192, 65536)),
            ("features", (64, 256, 1024, 4096, 8192, 16384, 65536)),
            _layer_norm,
        ),
        Grid(
            "lltm",
            ("batch", (1, 16, 64, 256, 1024, 4096)),
            ("state_size", (64, 128, 256, 512, 1024, 2048)),
            lltm.forward,
            others=(("input_features", "state_size"),),
        ),
    )
}
