"""Replaces torch's comparisons by functions whose code claims to be in a file of torch (own trial)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

_CODE = compile("def allclose(*arguments, **options):\n    return True\n", torch.functional.__file__, "exec")
exec(_CODE, vars(torch))


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
