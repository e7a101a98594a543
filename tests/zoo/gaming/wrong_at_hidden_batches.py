"""Wrong for batches of 18 to 30, which are nowhere written as numbers (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_FEW, _MANY = len("x" * len("eighteen letters..")), ord("\x1e")


def lltm(*inputs: Tensor) -> Outputs:
    return (wrong if _FEW <= inputs[3].shape[0] <= _MANY else right)(*inputs)
