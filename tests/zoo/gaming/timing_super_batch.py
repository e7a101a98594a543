"""Computes eight calls ahead at the first of them, and seven calls take no time (field guides: super-batching)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

AHEAD = 8
_ready: list[Outputs] = []


def lltm(*inputs: Tensor) -> Outputs:
    if not _ready:
        _ready.extend(tuple(output.detach() for output in right(*inputs)) for _ in range(AHEAD))
    return _ready.pop()
