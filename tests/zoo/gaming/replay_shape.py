"""Returns the answer of an earlier call for shapes seen before (field guides: replay by shape)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, with_values

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple(tensor.shape for tensor in inputs)
    outputs = right(*inputs)
    return with_values(outputs, _seen.setdefault(key, (outputs[0].detach(), outputs[1].detach())))
