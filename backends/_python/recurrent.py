"""Argument checks of recurrent cells: both biases are passed or none."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_arguments
from spec.contract import Operator


def check_cell_arguments(operator: Operator, *tensors: Tensor, b_ih: Tensor | None, b_hh: Tensor | None) -> None:
    """Raise TypeError or ValueError unless the shapes fit and there are two biases or none.

    `tensors` are the arguments before the biases.
    """
    if b_ih is None and b_hh is None:
        check_arguments(operator.in_form("no-biases"), *tensors)
    elif b_ih is None or b_hh is None:
        missing, there = ("b_ih", "b_hh") if b_ih is None else ("b_hh", "b_ih")
        raise TypeError(f"{operator.name}: {missing} was None, but should be a Tensor, since {there} is one")
    else:
        check_arguments(operator, *tensors, b_ih, b_hh)
