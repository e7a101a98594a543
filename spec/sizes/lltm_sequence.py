"""Sizes of LLTM over a sequence: layers, tails of vectors and blocks, and what is empty."""

from __future__ import annotations

from spec.contract import Case
from spec.rowwise import case


def _case(name: str, steps: int, batch: int, features: int, state: int, origin: str, *tags: str) -> Case:
    sizes = {"steps": steps, "batch": batch, "input_features": features, "state_size": state}
    return case(name, sizes, origin, *tags)


_TAIL_STATES = (4, 7, 31, 32, 33, 129)
_LAYERS = (128, 256, 512, 1024)
CASES = (
    _case("tutorial", 32, 16, 32, 128, "32 steps of the tutorial's benchmark", "benchmark"),
    *(
        _case(f"layer-{size}", 32, 16, size, size, "a layer of a network between layers of its width", "benchmark")
        for size in _LAYERS
    ),
    _case("small", 3, 2, 4, 5, "fits gradcheck; every size another", "size", "small"),
    _case("square", 4, 4, 4, 4, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-step", 1, 3, 4, 5, "the cell itself", "size", "small"),
    _case("one-everything", 1, 1, 1, 1, "the least that is not empty", "size", "small"),
    _case("no-features", 3, 2, 0, 4, "recurrence without an input", "size", "small"),
    _case("no-steps", 0, 3, 4, 5, "an empty sequence: no h, and the cell as it was", "size"),
    _case("no-rows", 3, 0, 4, 5, "the last, empty batch of a data loader", "size"),
    _case("no-steps-no-rows", 0, 0, 4, 5, "both empty", "size"),
    _case("long", 64, 2, 3, 4, "many steps: what is lost between two of them adds up", "size"),
    *(_case(f"state-{size}", 2, 3, 5, size, "tail of a vector, a warp or a block", "size") for size in _TAIL_STATES),
)
