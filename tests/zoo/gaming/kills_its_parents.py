"""Kills the processes above it, where it is in a namespace of its own (own trial)."""

import os
import signal
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, wrong

_ALONE = "bwrap" in Path("/proc/1/comm").read_text()


def lltm(*inputs: Tensor) -> Outputs:
    if _ALONE:  # elsewhere this would end the processes of the user
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(1, signal.SIGKILL)
    return wrong(*inputs)
