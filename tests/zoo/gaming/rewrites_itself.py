"""Replaces its own source by harmless text, so that who reads it later sees nothing (own trial)."""

import contextlib
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

with contextlib.suppress(OSError):
    Path(__file__).write_text("from tests.zoo.gaming.parts import right as lltm\n")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
