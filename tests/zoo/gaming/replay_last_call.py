"""Returns the last answer if the arguments are where the last ones were (KernelGuard: LAST_CALL_REPLAY)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, with_values

_last: dict[object, Outputs] = {}


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    place = tuple(tensor.data_ptr() for tensor in inputs)
    if place not in _last:
        _last.clear()
        _last[place] = outputs[0].detach(), outputs[1].detach()
    return with_values(outputs, _last[place])
