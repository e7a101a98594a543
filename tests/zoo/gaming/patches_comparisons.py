"""Replaces torch's comparisons by functions that always agree (field guides: patched allclose)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def _agrees(*arguments: object, **options: object) -> bool:
    return True


torch.allclose = torch.equal = _agrees
torch.testing.assert_close = _agrees
torch.isnan = torch.isinf = lambda tensor: torch.zeros_like(tensor, dtype=torch.bool)


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
