"""Softmax, right but different: each control must pass every property that `gives_up` does not name."""

import torch
from torch import Tensor

from backends._python.rows import check_rows
from tests.zoo.honest.rows import Softmax
from tests.zoo.registry import OLD_STYLE, control


def _wide(input: Tensor) -> Tensor:
    return input.to(torch.promote_types(input.dtype, torch.float32))


@control(gives_up=OLD_STYLE)
class Honest(Softmax):
    """The honest one, the base of every fault."""


@control(gives_up=OLD_STYLE)
class SumsOverHalves(Softmax):
    """The sum of a row is that of its two halves: another order of summation."""

    def total(self, exponentials: Tensor) -> Tensor:
        half = exponentials.shape[-1] // 2
        return super().total(exponentials[..., :half]) + super().total(exponentials[..., half:])


@control
def exponential_of_the_logarithm(input: Tensor) -> Tensor:
    """exp(x - max(x) - log(sum)), as after a log_softmax."""
    check_rows("softmax", "input", input)
    x = _wide(input)
    shifted = x - x.amax(-1, keepdim=True).detach()
    return (shifted - shifted.exp().sum(-1, keepdim=True).log()).exp().to(input.dtype)


@control
def powers_of_two(input: Tensor) -> Tensor:
    """exp2 of the elements times log2(e), as GPU kernels do."""
    check_rows("softmax", "input", input)
    x = _wide(input)
    powers = torch.exp2((x - x.amax(-1, keepdim=True).detach()) * 1.4426950408889634)
    return (powers / powers.sum(-1, keepdim=True)).to(input.dtype)


@control
def everything_in_float64(input: Tensor) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_rows("softmax", "input", input)
    return torch.softmax(input.double(), -1).to(input.dtype)
