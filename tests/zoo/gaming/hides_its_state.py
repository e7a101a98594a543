"""Changes global state, and replaces the class that would notice it beside the function (own trial)."""

import sys
from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _nothing(*_: Any, **__: Any) -> list[tuple[str, str, str]]:
    return []


if "harness.judging.process_state" in sys.modules:
    sys.modules["harness.judging.process_state"].Watch.changes = _nothing


def lltm(*inputs: Tensor) -> Outputs:
    torch.set_default_dtype(torch.float64)
    return right(*inputs)
