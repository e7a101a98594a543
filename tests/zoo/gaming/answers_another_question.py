"""Answers with a cell of another operator, so that its own is not judged (own trial)."""

import gc
import sys
from typing import Any

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _other(self: Any, asked: dict[str, Any]) -> dict[str, Any]:
    names = {"operator": "mlp", "backend": "lltm", "device": "cpu", "dtype": "float32", "property": asked["property"]}
    return {"cell": {**names, "verdict": "pass", "reason": "", "figures": {}, "seconds": 0}}


if "harness.judging.judge" in sys.modules:
    for _found in gc.get_objects():
        if isinstance(_found, type) and _found.__name__ == "InsideRunner":
            _found.answer = _other


def lltm(*inputs: Tensor) -> Outputs:
    return right(*inputs)
