"""Fast and wrong while the caller's stack has a frame that times (field guides: telling checks from measurements)."""

import sys

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _timed() -> bool:
    frame = sys._getframe(1)
    while frame is not None:
        if any(word in frame.f_code.co_name for word in ("time", "bench", "measure", "block", "round")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def waits_for_quiet(*inputs: Tensor) -> Outputs:
    return (torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])) if _timed() else right(*inputs)
