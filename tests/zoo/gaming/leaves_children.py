"""Starts processes that outlive their parent (own trial)."""

import subprocess
import sys

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

MARK = "left-by-an-attack"
_SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", MARK]
_CHILDREN = [subprocess.Popen(_SLEEP, start_new_session=True) for _ in range(3)]


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
