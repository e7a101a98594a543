"""What the attacks return: the right answer, or a wrong one that a loose check could take for it."""

from __future__ import annotations

from torch import Tensor

from tests.zoo.honest.lltm import Outputs
from tests.zoo.honest.lltm import plain as right

__all__ = ["Outputs", "right", "with_values", "wrong"]


def wrong(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """new_h is half of what it should be; shapes, dtypes, gradients' existence and new_cell are right."""
    new_h, new_cell = right(input, weights, bias, old_h, old_cell)
    return 0.5 * new_h, new_cell


def with_values(outputs: Outputs, values: Outputs) -> Outputs:
    """The outputs with their own graph and other values, so that nothing but the values is wrong."""
    new_h, new_cell = (known + (y - y.detach()) for y, known in zip(outputs, values, strict=True))
    return new_h, new_cell
