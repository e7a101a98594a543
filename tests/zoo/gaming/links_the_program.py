"""Puts links to a file of the suite where the judge might write when it starts the process again (own trial)."""

import os
import tempfile
from pathlib import Path

from torch import Tensor

import spec
from tests.zoo.gaming.parts import Outputs

VICTIM = Path(spec.__file__).with_name("envelope.py")


def lltm(*inputs: Tensor) -> Outputs:
    for file in (Path(tempfile.gettempdir()) / "main.py", *Path(tempfile.gettempdir()).glob("call-*")):
        file.unlink(missing_ok=True)
        file.symlink_to(VICTIM)
    os._exit(1)
