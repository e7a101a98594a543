"""log_softmax, right but different: each control must pass every property that `gives_up` does not name."""

import torch
from torch import Tensor

from backends._python.rows import check_rows
from tests.zoo.honest.rows import LogSoftmax
from tests.zoo.registry import OLD_STYLE, control


def _wide(input: Tensor) -> Tensor:
    return input.to(torch.promote_types(input.dtype, torch.float32))


@control(gives_up=OLD_STYLE)
class Honest(LogSoftmax):
    """The honest one, the base of every fault."""


@control(gives_up=OLD_STYLE)
class SumsOverHalves(LogSoftmax):
    """The sum of a row is that of its two halves: another order of summation."""

    def total(self, exponentials: Tensor) -> Tensor:
        half = exponentials.shape[-1] // 2
        return super().total(exponentials[..., :half]) + super().total(exponentials[..., half:])


@control
def torchs_own(input: Tensor) -> Tensor:
    """torch.log_softmax, in float32 for half types: on the CPU it rounds the sum to the half type."""
    check_rows("log_softmax", "input", input)
    return torch.log_softmax(_wide(input), -1).to(input.dtype)


@control
def everything_in_float64(input: Tensor) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_rows("log_softmax", "input", input)
    return torch.log_softmax(input.double(), -1).to(input.dtype)
