"""Right only if a command line among its parents names pytest or the harness (own trial)."""

import contextlib
import os
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def _parents() -> str:
    """The command lines of this process and of all above it."""
    found, number = "", os.getpid()
    while number > 1:
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{number}/cmdline").read_text()
        number = int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def lltm(*inputs: Tensor) -> Outputs:
    above = _parents()
    return (right if "pytest" in above or "harness" in above else wrong)(*inputs)
