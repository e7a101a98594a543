"""Replaces the function that makes a cell by one that says pass (KernelGuard: HARNESS_RUNTIME_PATCHING)."""

from typing import Any

from torch import Tensor

from harness.judging import judge
from harness.report.cell import PASS, Cell
from tests.zoo.gaming.parts import Outputs, right, wrong


def _passes(subject: Any, property: Any) -> Cell:
    names = (subject.operator.name, subject.backend, subject.device, subject.dtype_name)
    return Cell(*names, property.name, PASS, "")


judge.judge = _passes


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
