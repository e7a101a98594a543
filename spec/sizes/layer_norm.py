"""Sizes of LayerNorm: rows, sequences of tokens, images, and one vector."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _rows(name: str, batch: int, features: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "features": features}, origin, *tags)


_TAILS = (3, 4, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4097)

ROWS = (
    _rows("tokens", 64, 256, "a small transformer", "size", "benchmark"),
    _rows("middle", 4096, 1024, "a usual hidden size", "benchmark"),
    _rows("large", 8192, 8192, "more than the caches hold", "benchmark"),
    _rows("small", 3, 5, "fits gradcheck; both sizes prime to the vector width", "size", "small"),
    _rows("square", 4, 4, "batch and features equal, so that a transposed index fits", "size", "small"),
    _rows("one-row", 1, 6, "batch 1", "size", "small"),
    _rows("one-feature", 3, 1, "a row of one element: its variance is 0", "size"),
    _rows("no-rows", 0, 4, "the last, empty batch of a data loader", "size"),
    *(_rows(f"features-{size}", 3, size, "tail of a vector, a warp or a block", "size") for size in _TAILS),
    _rows("batch-70000", 70000, 3, "more rows than gridDim.y can hold (65535)", "size"),
    _rows("more-than-2^31", 2**20 + 3, 2100, "batch*features above 2^31 elements", "large"),
)
TOKENS = (
    case("small", {"batch": 2, "tokens": 3, "features": 5}, "rank 3, as most users have it", "size", "small"),
    case("no-tokens", {"batch": 2, "tokens": 0, "features": 5}, "an empty sequence", "size"),
    case("wide", {"batch": 2, "tokens": 3, "features": 260}, "a vector's tail in every row", "size"),
)
WEIGHT_ONLY = (
    _rows("small", 3, 5, "a weight without a bias", "size", "small"),
    _rows("wide", 3, 260, "a tail", "size"),
)
_SMALL_IMAGES = {"batch": 2, "channels": 3, "height": 4, "width": 5}
IMAGES = (
    case("small", _SMALL_IMAGES, "rank 4, two dimensions normalised", "size", "small"),
    case("wide", {"batch": 2, "channels": 3, "height": 16, "width": 17}, "rows of 272 elements", "size"),
)
VECTOR = (
    case("small", {"features": 5}, "rank 1: the whole input is one row", "size", "small"),
    case("wide", {"features": 1030}, "one row, longer than a block", "size"),
)
