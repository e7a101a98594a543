"""Takes its memory in a child process, which a limit on one process does not count (own trial)."""

import subprocess
import sys

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_TAKE = "import time; x = bytearray(5 * 2**28); x[::4096] = bytes(5 * 2**16); time.sleep(600)"


def lltm(*inputs: Tensor) -> Outputs:
    subprocess.run([sys.executable, "-c", _TAKE], check=True)
    return right(*inputs)
