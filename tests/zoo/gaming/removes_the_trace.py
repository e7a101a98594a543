"""Removes the file in which a call is written down, and ends the process (own trial)."""

import os
import tempfile
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    for file in Path(tempfile.gettempdir()).glob("call-*"):
        file.unlink()
    os._exit(1)
