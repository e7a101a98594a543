"""LLTM: the contract's own forward under torch.compile."""

from __future__ import annotations

from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from backends.torch_compile._compiled import compiled
from spec.lltm import OPERATOR, forward


@by_rule(OPERATOR)
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """(new_h, new_cell), each (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    new_h, new_cell = compiled(forward)(input, weights, bias, old_h, old_cell)
    return new_h, new_cell


IMPLEMENTATION = PythonFunction(lltm)
