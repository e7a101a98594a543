"""Computes in float16 what is declared as float32 (KernelBench: check_precision_downgrade)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    new_h, new_cell = right(*(tensor.half() for tensor in inputs))
    return new_h.to(inputs[0].dtype), new_cell.to(inputs[0].dtype)
