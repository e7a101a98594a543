"""Rotary embedding as fla.modules.rotary.rotary_embedding."""

from __future__ import annotations

from torch import Tensor

from backends.base import PythonFunction, check_arguments
from backends.fla import _package
from spec.rotary import OPERATOR


def rotary(input: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False) -> Tensor:
    """Pairs of the last dimension of input turned by the angles whose cosines and sines are given."""
    check_arguments(OPERATOR, input, cos, sin)
    output: Tensor = _package.rotary_embedding(input, cos, sin, interleaved=interleaved)
    return output


IMPLEMENTATION = PythonFunction(rotary)
