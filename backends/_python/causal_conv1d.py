"""Argument checks of causal_conv1d: the bias is optional, and the activation has a name."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_arguments
from spec.causal_conv1d import OPERATOR

_WITHOUT_BIAS = OPERATOR.in_form("no-bias")


def check_causal_conv1d_arguments(input: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None) -> None:
    """Raise TypeError or ValueError unless the shapes fit and the activation is None or "silu"."""
    if activation not in (None, "silu"):
        raise ValueError(f"causal_conv1d: activation was {activation!r}, but should be None or 'silu'")
    if bias is None:
        check_arguments(_WITHOUT_BIAS, input, weight)
    else:
        check_arguments(OPERATOR, input, weight, bias)
    if not weight.shape[1]:
        raise ValueError(
            f"causal_conv1d: weight was {tuple(weight.shape)}, but should be (channels, width), 1 or more wide"
        )
