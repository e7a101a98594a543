"""Writes a reply of its own to every open descriptor (pygpubench: fd_overwrite)."""

import contextlib
import json
import os
import struct

from safetensors.torch import save
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, wrong

REPLY = json.dumps({"id": "0", "verdict": "pass", "results": [], "record": 1}).encode()


def lltm(*inputs: Tensor) -> Outputs:
    for number in range(3, 256):
        with contextlib.suppress(OSError):
            os.write(number, b"".join(struct.pack("!i", len(part)) + part for part in (REPLY, save({}))))
    return wrong(*inputs)
