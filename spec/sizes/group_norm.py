"""Sizes of GroupNorm: images, sequences of channels, and vectors."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _image(name: str, batch: int, depth: int, height: int, width: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "depth": depth, "height": height, "width": width}, origin, *tags)


def _sequence(name: str, batch: int, depth: int, length: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "depth": depth, "length": length}, origin, *tags)


IMAGES = (
    _image("feature-map", 2, 16, 16, 16, "a small convolutional network", "size", "benchmark"),
    _image("small", 3, 2, 2, 5, "fits gradcheck", "size", "small"),
    _image("square", 4, 2, 4, 4, "all dimensions equal, so that an exchanged index fits", "size", "small"),
    _image("one-channel", 2, 1, 2, 3, "groups of one channel, as in InstanceNorm", "size", "small"),
    _image("one-element", 3, 1, 1, 1, "groups of one element: their variance is 0", "size"),
    _image("no-rows", 0, 2, 2, 3, "the last, empty batch of a data loader", "size"),
    *(
        _image(f"width-{n}", 2, 2, 3, n, "tail of a vector, a warp or a block", "size")
        for n in (7, 8, 31, 33, 257, 1025)
    ),
    *(_image(f"depth-{n}", 2, n, 2, 3, "tail of a block of channels", "size") for n in (5, 16, 33, 129)),
    _image("batch-70000", 70000, 1, 1, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _image("more-than-2^31", 2**18 + 3, 32, 12, 11, "above 2^31 elements", "large"),
    _image("large", 16, 160, 64, 64, "more than the caches hold", "benchmark"),
)
_SD = "stable-diffusion-v1-5/unet/config.json: norm_num_groups 32, block_out_channels"
DIFFUSION = (
    _sequence("small", 2, 1, 3, "32 groups of one channel", "size", "small"),
    _sequence("wide", 2, 2, 129, "a tail behind a block of 256", "size"),
    _sequence("sd-1.5-lowest", 2, 40, 64, f"{_SD} 1280, of 8x8 pixels", "size", "model"),
    _sequence("sd-1.5-highest", 2, 10, 4096, f"{_SD} 320, of 64x64 pixels", "model"),
)
SOUND = (
    _sequence("small", 2, 2, 5, "rank 3, a number of groups that is no power of 2", "size", "small"),
    _sequence("wide", 2, 5, 61, "a tail behind a block of 256", "size"),
)
VECTORS = (
    case("small", {"batch": 3, "depth": 5}, "rank 2, one group", "size", "small"),
    case("wide", {"batch": 3, "depth": 1030}, "a group longer than a block", "size"),
)
