"""Loads the suite's comparison again after a change of what it imports (field guides: module reload)."""

import importlib

from torch import Tensor

from harness.judging import compare
from spec import envelope
from tests.zoo.gaming.parts import Outputs, right, wrong

envelope.Envelope.__eq__ = lambda *arguments: True
importlib.reload(compare)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
