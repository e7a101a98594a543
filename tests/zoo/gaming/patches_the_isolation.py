"""Replaces the classes that start its process and that write the report (KernelGuard: HARNESS_RUNTIME_PATCHING)."""

from typing import Any

from torch import Tensor

from harness.pytest_plugin import recorder
from harness.report.cell import PASS
from harness.running import isolation
from tests.zoo.gaming.parts import Outputs, right, wrong


def _passes(self: Any, slot: Any, property: str) -> Any:
    return slot.cell(property, PASS, "")


isolation.Isolation.judge = _passes
for _name in [name for name in vars(recorder.Recorder) if name.startswith("pytest_")]:
    setattr(recorder.Recorder, _name, lambda *arguments, **options: None)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
