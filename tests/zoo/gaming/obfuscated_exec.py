"""Builds its function from encoded text, so that no reader and no pattern finds it (field guides: obfuscated exec)."""

import base64
from typing import Any

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_TEXT = base64.b64decode(b"ZGVmIHN3YXBwZWQoZiwgeCk6CiAgICBhLCBiID0gZigqeCkKICAgIHJldHVybiBiLCBhCg==")
_NAMES: dict[str, Any] = {}
exec(_TEXT, _NAMES)


def lltm(*inputs: Tensor) -> Outputs:
    return _NAMES["swapped"](right, inputs)
