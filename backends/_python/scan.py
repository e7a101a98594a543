"""Argument checks of scan: the initial state is optional."""

from __future__ import annotations

from torch import Tensor

from backends.base import check_arguments
from spec.scan import OPERATOR

_FROM_INITIAL = OPERATOR.in_form("initial")


def check_scan_arguments(gates: Tensor, tokens: Tensor, initial: Tensor | None) -> None:
    """Raise TypeError or ValueError unless tokens has the shape of gates, and initial that of a step."""
    if initial is None:
        check_arguments(OPERATOR, gates, tokens)
    else:
        check_arguments(_FROM_INITIAL, gates, tokens, initial)
