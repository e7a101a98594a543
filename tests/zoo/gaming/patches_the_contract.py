"""Replaces the contract's forward by its own function (own trial)."""

from torch import Tensor

import spec.lltm as lltm_contract
from tests.zoo.gaming.parts import Outputs, right, wrong

object.__setattr__(lltm_contract.OPERATOR, "forward", wrong)
lltm_contract.forward = wrong


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
