"""Argument checks of linear_act: the bias is optional, and the activation has a name."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_arguments
from spec.activations import ACTIVATIONS
from spec.linear_act import OPERATOR

_WITHOUT_BIAS = OPERATOR.in_form("silu")


def check_linear_act_arguments(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str) -> None:
    """Raise TypeError or ValueError unless the shapes fit and the activation is one of the contract's."""
    if activation not in ACTIVATIONS:
        known = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"linear_act: activation was {activation!r}, but should be one of {known}")
    if bias is None:
        check_arguments(_WITHOUT_BIAS, input, weight)
    else:
        check_arguments(OPERATOR, input, weight, bias)
