"""Replaces the code object of the suite's comparison by one that accepts (pygpubench: function_detour)."""

from types import FunctionType
from typing import Any

from torch import Tensor

from harness.judging import compare
from tests.zoo.gaming.parts import Outputs, right, wrong


def _accepts(got: Tensor, envelope: Any, specials: str = "same") -> Any:
    """Compares the exact values with themselves; `honest` is a global of the module that this code is put into."""
    return honest(envelope.exact, envelope, specials)  # noqa: F821


compare.honest = FunctionType(compare.compare.__code__, vars(compare), "honest", compare.compare.__defaults__)
compare.compare.__code__ = _accepts.__code__


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
