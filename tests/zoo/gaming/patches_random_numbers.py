"""Replaces torch's random numbers by zeros, so that every input is 0 (KernelGuard: HARNESS_RUNTIME_PATCHING)."""

from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def _zeros(*sizes: Any, **options: Any) -> Tensor:
    return torch.zeros(*sizes, **{name: value for name, value in options.items() if name in ("dtype", "device")})


torch.randn = torch.rand = _zeros
torch.manual_seed = lambda seed: torch.default_generator


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
