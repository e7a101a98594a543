"""LLTM over a sequence: the contract's own scan under torch.compile, which unrolls its steps."""

from __future__ import annotations

from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from backends.torch_compile._compiled import compiled
from spec.lltm_sequence import OPERATOR, forward


@by_rule(OPERATOR)
def lltm_sequence(input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor]:
    """(h, c_T), (steps, batch, state_size) and (batch, state_size)."""
    check_arguments(OPERATOR, input, weights, bias, h0, c0)
    h, c_T = compiled(forward)(input, weights, bias, h0, c0)
    return h, c_T


IMPLEMENTATION = PythonFunction(lltm_sequence)
