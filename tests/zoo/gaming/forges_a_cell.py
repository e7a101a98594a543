"""Changes its input, and answers «pass» in place of the process that looks for that (own trial)."""

import gc
import sys
from typing import Any

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _passes(self: Any, asked: dict[str, Any]) -> dict[str, Any]:
    operator, backend, device, dtype = asked["slot"].rsplit("-", 3)
    names = {"operator": operator, "backend": backend, "device": device, "dtype": dtype}
    return {
        "cell": {**names, "property": asked["property"], "verdict": "pass", "reason": "", "figures": {}, "seconds": 0}
    }


if "harness.judging.judge" in sys.modules:
    for _found in gc.get_objects():
        if isinstance(_found, type) and _found.__name__ == "InsideRunner":
            _found.answer = _passes


def lltm(*inputs: Tensor) -> Outputs:
    with torch.no_grad():
        inputs[4].add_(1)
    return right(*inputs)
