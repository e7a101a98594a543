"""What contracts of operators on rows share: the last dimension is a row, and all others, if any, count the rows.

Their cases have the same reasons: tails of vectors, warps and blocks, empty batches, grids. Their value families are
ordinary values with something changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from spec.contract import Case, Draw, Family, Refusal, Sizes, TensorArg

Drawn = dict[str, Tensor]
#: Changes ordinary values in place.
Change = Callable[[Drawn, Draw, torch.dtype], None]
Make = Callable[[Sizes, Draw, torch.dtype], Drawn]

_TAILS = (3, 4, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4097)


def case(name: str, sizes: Sizes, origin: str, *tags: str) -> Case:
    """A case with its tags."""
    return Case(name, sizes, origin, frozenset(tags))


def matrix_cases(row: str) -> tuple[Case, ...]:
    """Cases of (batch, ROW), where `row` is the symbol of the length of a row."""

    def rows(name: str, batch: int, length: int, origin: str, *tags: str) -> Case:
        return case(name, {"batch": batch, row: length}, origin, *tags)

    return (
        rows("tokens", 64, 256, "a small transformer", "size", "benchmark"),
        rows("small", 3, 5, "fits gradcheck; both sizes prime to the vector width", "size", "small"),
        rows("square", 4, 4, "both sizes equal, so that a transposed index fits", "size", "small"),
        rows("one-row", 1, 6, "batch 1", "size", "small"),
        rows("one-element", 3, 1, "a row of one element", "size"),
        rows("no-rows", 0, 4, "the last, empty batch of a data loader", "size"),
        *(rows(f"{row}-{size}", 3, size, "tail of a vector, a warp or a block", "size") for size in _TAILS),
        rows("batch-70000", 70000, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
        rows("more-than-2^31", 2**20 + 3, 2100, "above 2^31 elements", "large"),
    )


def few_cases(row: str) -> tuple[Case, ...]:
    """Some of the cases of (batch, ROW), for a further form."""
    names = ("tokens", "small", "square", "no-rows", f"{row}-257", f"{row}-1025")
    return tuple(each for each in matrix_cases(row) if each.name in names)


def tokens_cases(row: str) -> tuple[Case, ...]:
    """Cases of (batch, tokens, ROW)."""
    return (
        case("small", {"batch": 2, "tokens": 3, row: 5}, "rank 3: rows in two dimensions", "size", "small"),
        case("wide", {"batch": 2, "tokens": 3, row: 260}, "rank 3, a tail behind a block of 256", "size"),
    )


def vector_cases(row: str) -> tuple[Case, ...]:
    """Cases of (ROW,)."""
    return (
        case("small", {row: 5}, "rank 1: the whole input is one row", "size", "small"),
        case("wide", {row: 1030}, "one row, longer than a block", "size"),
    )


def as_rows(tensor: Tensor) -> Tensor:
    """A view of shape (rows, elements of a row)."""
    return tensor.view(-1, max(tensor.shape[-1], 1))


def over_rows(tensor: Tensor) -> Tensor:
    """The sum over all rows, of the shape of one row."""
    return tensor.sum(tuple(range(tensor.dim() - 1))) if tensor.dim() > 1 else tensor


def ordinary(inputs: Sequence[TensorArg], sizes: Sizes, draw: Draw) -> Drawn:
    """Ordinary values by name."""
    return {arg.name: arg.ordinary(sizes, draw) for arg in inputs}


def changed(inputs: Sequence[TensorArg], change: Change) -> Make:
    """Ordinary values with that change, as a value family or an invariant makes them."""

    def make(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        change(drawn, draw, dtype)
        return drawn

    return make


def families(inputs: Sequence[TensorArg], changes: dict[str, tuple[str, Change]]) -> tuple[Family, ...]:
    """Value families by name, each with its purpose and the change of ordinary values."""
    return tuple(Family(name, purpose, changed(inputs, change)) for name, (purpose, change) in changes.items())


def non_finite(name: str) -> tuple[str, Change]:
    """NaN, inf and -inf in the first three rows of that input, one in each; all other rows stay ordinary."""

    def change(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        rows = as_rows(drawn[name])
        for row, value in zip(range(rows.shape[0]), (float("nan"), float("inf"), -float("inf")), strict=False):
            rows[row, row % rows.shape[1]] = value

    return "inf and NaN in three rows, which must stay in their rows", change


def on(name: str, change: Callable[[Tensor, Draw], None]) -> Change:
    """The rows of that input changed in place."""

    def changed(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        change(as_rows(drawn[name]), draw)

    return changed


def scaled(name: str, factor: float) -> Change:
    """That input multiplied by a number."""

    def change(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        drawn[name] *= factor

    return change


def without_dimensions(name: str) -> Refusal:
    """A call whose first tensor has no dimension, so no row; the other tensors are left away."""

    def call(function: Callable[..., Any], *tensors: Tensor) -> Any:
        return function(tensors[0].flatten()[0])

    return Refusal(f"{name} without a dimension", name, call)
