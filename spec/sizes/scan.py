"""Sizes of scans: lengths and channels about tiles, and those of recurrent models."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, batch: int, channels: int, length: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "channels": channels, "length": length}, origin, *tags)


_TAIL = "tail of a vector, a warp or a chunk"
FEW = (
    _case("usual", 2, 64, 32, "a small recurrent model", "size", "benchmark"),
    _case("small", 2, 3, 5, "fits gradcheck; every size another", "size", "small"),
    _case("square", 3, 3, 3, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-step", 2, 3, 1, "a step of decoding", "size"),
    _case("no-steps", 2, 3, 0, "an empty sequence", "size"),
    _case("length-257", 1, 2, 257, "a tail behind a chunk of 256", "size"),
)
CASES = (
    *FEW,
    _case("no-batch", 0, 3, 5, "the last, empty batch of a data loader", "size"),
    *(_case(f"length-{n}", 1, 2, n, _TAIL, "size") for n in (2, 7, 8, 31, 33, 64, 65, 129, 1025)),
    *(_case(f"channels-{n}", 2, n, 5, "tail of a tile of channels", "size") for n in (31, 33, 65, 129)),
    _case("batch-70000", 70000, 1, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("recurrentgemma-2b", 1, 2560, 4, "recurrentgemma-2b/config.json: lru_width", "size", "model"),
    _case("mamba-130m", 1, 24576, 3, "mamba-130m-hf/config.json: intermediate_size, state_size", "size", "model"),
    _case("more-than-2^31", 2**20 + 3, 1030, 2, "above 2^31 elements", "large"),
    _case("recurrentgemma-2b-prompt", 1, 2560, 256, "the same lru_width, 256 tokens", "benchmark", "model"),
)
