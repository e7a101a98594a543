"""Raises the exception by which a property says that it does not apply (own trial)."""

from torch import Tensor

from harness.errors import NotApplicable
from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise NotApplicable("nothing to judge here")
