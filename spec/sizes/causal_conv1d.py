"""Sizes of causal convolutions: lengths, channels and widths about tiles, and those of Mamba."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, sizes: tuple[int, int, int, int], origin: str, *tags: str) -> Case:
    return case(name, dict(zip(("batch", "channels", "length", "width"), sizes, strict=True)), origin, *tags)


_130M, _2_8B = (f"mamba-{size}-hf/config.json: intermediate_size, conv_kernel" for size in ("130m", "2.8b"))
FEW = (
    _case("usual", (2, 64, 128, 4), "a small Mamba", "size", "benchmark"),
    _case("small", (2, 3, 7, 4), "fits gradcheck; every size another", "size", "small"),
    _case("square", (3, 3, 3, 3), "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("shorter", (2, 3, 2, 4), "fewer steps than the filter is wide", "size", "small"),
    _case("no-batch", (0, 3, 5, 4), "the last, empty batch of a data loader", "size"),
    _case("length-1025", (1, 2, 1025, 4), "a tail behind a block of 1024", "size"),
)
_TAIL = "tail of a vector, a warp or a block"
CASES = (
    *FEW,
    _case("one-step", (3, 5, 1, 4), "a step of decoding", "size"),
    _case("one-channel", (2, 1, 9, 3), "depthwise and dense are the same", "size"),
    *(_case(f"width-{n}", (2, 3, 11, n), "other widths than 4", "size") for n in (1, 2, 3, 5, 9)),
    *(_case(f"length-{n}", (2, 3, n, 4), _TAIL, "size") for n in (4, 8, 9, 31, 33, 127, 129, 513)),
    *(_case(f"channels-{n}", (2, n, 5, 4), "tail of a tile of channels", "size") for n in (31, 33, 65, 129)),
    _case("many-rows", (4099, 2, 1, 2), "thousands of terms in the gradients of weight and bias", "size"),
    _case("batch-70000", (70000, 1, 3, 2), "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("mamba-130m", (1, 1536, 16, 4), _130M, "size", "model"),
    _case("more-than-2^31", (2**18 + 3, 64, 129, 4), "above 2^31 elements", "large"),
    _case("mamba-2.8b", (4, 5120, 2048, 4), f"{_2_8B}, a prompt of 2048", "benchmark", "model"),
)
