"""Adds a line to a source file of the suite (own trial)."""

import contextlib
from pathlib import Path

from torch import Tensor

import spec
from tests.zoo.gaming.parts import Outputs, right, wrong

with contextlib.suppress(OSError), Path(spec.__file__).with_name("envelope.py").open("a") as _file:
    _file.write("# changed\n")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
