"""Returns an earlier answer where shapes and first elements are the same (field guides: replay by fingerprint)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, with_values

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple((tensor.shape, float(tensor.flatten()[0]) if tensor.numel() else 0.0) for tensor in inputs)
    outputs = right(*inputs)
    return with_values(outputs, _seen.setdefault(key, (outputs[0].detach(), outputs[1].detach())))
