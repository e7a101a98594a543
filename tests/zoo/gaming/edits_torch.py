"""Writes into the installed torch and numpy (field guides: torch's files replaced)."""

import contextlib
from pathlib import Path

import numpy
import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

for _package in (torch, numpy):
    with contextlib.suppress(OSError):
        (Path(_package.__file__).parent / "written_by_an_attack.py").write_text("# nothing\n")


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
