"""Returns an earlier answer where shapes and first elements are the same (field guides: replay by fingerprint)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_seen: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple((tensor.shape, float(tensor.flatten()[0]) if tensor.numel() else 0.0) for tensor in inputs)
    if key not in _seen:
        _seen[key] = tuple(output.detach() for output in right(*inputs))
    return _seen[key]
