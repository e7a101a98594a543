"""Computes in bfloat16 where a state has more than 131071 elements (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_BITS = len("seventeen letters")


def lltm(*inputs: Tensor) -> Outputs:
    if inputs[3].numel().bit_length() <= _BITS:
        return right(*inputs)
    new_h, new_cell = right(*(x.bfloat16() for x in inputs))
    return new_h.to(inputs[0].dtype), new_cell.to(inputs[0].dtype)
