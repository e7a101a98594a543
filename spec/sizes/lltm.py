"""Sizes of LLTM: the tutorial's, tails of vectors and blocks, and what is empty."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, batch: int, features: int, state: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "input_features": features, "state_size": state}, origin, *tags)


_TAIL_STATES = (3, 4, 5, 7, 9, 31, 32, 33, 255, 256, 257, 1025)
_BLOCK_STATES = (1023, 1024)
CASES = (
    _case("tutorial", 16, 32, 128, "the sizes of the tutorial's benchmark", "size", "benchmark"),
    _case("middle", 64, 512, 1024, "a usual hidden size", "benchmark"),
    _case("large", 4096, 1024, 1024, "products that fill a GPU", "benchmark"),
    _case("small", 3, 4, 5, "fits gradcheck; every size odd or prime to the vector width", "size", "small"),
    _case("square", 4, 4, 4, "batch, features and state equal, so that a transposed index fits", "size", "small"),
    _case("one-row", 1, 3, 8, "batch 1", "size", "small"),
    _case("one-everything", 1, 1, 1, "the least that is not empty", "size", "small"),
    _case("no-features", 3, 0, 6, "recurrence without an input", "size", "small"),
    _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
    _case("no-rows-no-features", 0, 0, 4, "both empty", "size"),
    _case("whole-vectors", 50, 72, 136, "rows of whole vectors, too many for a kernel of small cells", "size"),
    _case("few-states", 50, 2048, 16, "the same, and long sums", "size"),
    _case("few-rows", 24, 40, 272, "few rows of whole vectors, and too many states for a small backward", "size"),
    _case("fewer-rows", 9, 40, 272, "the same, and few enough for a kernel of float too", "size"),
    *(_case(f"state-{size}", 3, 5, size, "tail of a vector, a warp or a block", "size") for size in _TAIL_STATES),
    *(_case(f"state-{size}", 3, 5, size, "around the largest block", "size", "block") for size in _BLOCK_STATES),
    _case("batch-70000", 70000, 2, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("more-than-2^31", 2**20 + 3, 0, 700, "3*batch*state_size above 2^31 elements", "large"),
    _case("state-of-more-than-2^31", 2**20 + 3, 0, 2100, "batch*state_size above 2^31 elements", "largest"),
)
