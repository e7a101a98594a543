"""Returns the last answer if the arguments are where the last ones were (KernelGuard: LAST_CALL_REPLAY)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_last: list[object] = [None, None]


def lltm(*inputs: Tensor) -> Outputs:
    place = tuple(tensor.data_ptr() for tensor in inputs)
    if _last[0] != place:
        _last[:] = [place, tuple(output.detach() for output in right(*inputs))]
    return _last[1]
