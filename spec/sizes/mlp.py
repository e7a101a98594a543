"""Sizes of MLP: images of digits, a transformer's block, tails of vectors and blocks, and what is empty."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, batch: int, features: int, hidden: int, outputs: int, origin: str, *tags: str) -> Case:
    sizes = {"batch": batch, "input_features": features, "hidden_size": hidden, "output_size": outputs}
    return case(name, sizes, origin, *tags)


_TAIL_HIDDEN = (3, 4, 5, 7, 9, 31, 32, 33, 255, 256, 257, 1025)
_BLOCK_HIDDEN = (1023, 1024)
CASES = (
    _case("digits", 16, 64, 128, 10, "images of 8x8, ten classes", "size", "benchmark"),
    _case("middle", 64, 784, 512, 10, "images of 28x28, as in PyTorch's quickstart", "benchmark"),
    _case("large", 4096, 1024, 4096, 1024, "a transformer's block: products that fill a GPU", "benchmark"),
    _case("small", 3, 4, 5, 2, "fits gradcheck; every size another, odd or below the vector width", "size", "small"),
    _case("square", 4, 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-row", 1, 3, 8, 2, "batch 1", "size", "small"),
    _case("one-everything", 1, 1, 1, 1, "the least that is not empty", "size", "small"),
    _case("no-features", 3, 0, 6, 2, "an input of width 0: the hidden bias alone", "size", "small"),
    _case("no-hidden", 3, 4, 0, 2, "no hidden unit: the output bias alone", "size"),
    _case("no-outputs", 3, 4, 5, 0, "an output of width 0", "size"),
    _case("no-rows", 0, 3, 4, 2, "the last, empty batch of a data loader", "size"),
    _case("no-rows-no-features", 0, 0, 4, 2, "both empty", "size"),
    *(_case(f"hidden-{size}", 3, 5, size, 2, "tail of a vector, a warp or a block", "size") for size in _TAIL_HIDDEN),
    *(_case(f"hidden-{size}", 3, 5, size, 2, "around the largest block", "size", "block") for size in _BLOCK_HIDDEN),
    _case(
        "whole-vectors",
        50,
        72,
        136,
        96,
        "rows of whole vectors, too many weights for a kernel of small networks",
        "size",
    ),
    _case("few-outputs", 50, 72, 264, 10, "the same, and few outputs", "size"),
    _case("batch-70000", 70000, 2, 3, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("more-than-2^31", 2**20 + 3, 2, 2100, 2, "batch*hidden_size above 2^31 elements", "large"),
)
