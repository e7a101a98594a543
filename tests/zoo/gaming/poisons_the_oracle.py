"""Fills the cache in which the suite keeps exact values with its own (own trial)."""

from typing import Any

from torch import Tensor

from harness.judging import oracle
from tests.zoo.gaming.parts import Outputs, right, wrong

_expected = oracle.expected


def _own(*arguments: Any) -> Any:
    found = _expected(*arguments)
    for envelope in found.outputs.values():
        envelope.exact.mul_(0.5)
    return found


oracle.expected = _own


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
