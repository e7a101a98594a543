"""Sets the number of drawn calls to 0 and their sizes to 1 (own trial)."""

from torch import Tensor

from harness.judging import drawn_scenarios, subject
from tests.zoo.gaming.parts import Outputs, right, wrong

drawn_scenarios._SIZES = (1,)
object.__setattr__(subject.USUAL, "count", 0)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
