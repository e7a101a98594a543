"""Returns the answer of an earlier call for addresses seen before (KernelGuard: POINTER_REPLAY)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple(tensor.data_ptr() for tensor in inputs)
    if key not in _seen:
        _seen[key] = tuple(output.detach() for output in right(*inputs))
    return _seen[key]
