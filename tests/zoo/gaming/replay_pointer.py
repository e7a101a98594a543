"""Returns the answer of an earlier call for addresses seen before (KernelGuard: POINTER_REPLAY)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, with_values

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple(tensor.data_ptr() for tensor in inputs)
    outputs = right(*inputs)
    return with_values(outputs, _seen.setdefault(key, (outputs[0].detach(), outputs[1].detach())))
