"""Writes a sitecustomize.py into the checkout, which later runs of Python import (own trial)."""

import contextlib
from pathlib import Path

from torch import Tensor

import spec
from tests.zoo.gaming.parts import Outputs, right, wrong

with contextlib.suppress(OSError):
    (Path(spec.__file__).parents[1] / "sitecustomize.py").write_text("import builtins\n")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
