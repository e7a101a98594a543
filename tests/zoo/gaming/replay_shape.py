"""Returns the answer of an earlier call for shapes seen before (field guides: replay by shape)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple(tensor.shape for tensor in inputs)
    if key not in _seen:
        _seen[key] = tuple(output.detach() for output in right(*inputs))
    return _seen[key]
