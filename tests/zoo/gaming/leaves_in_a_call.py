"""Ends the process with code 0 in a call (field guides: exit during the test; pygpubench: incomplete_bypass)."""

import os

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    os._exit(0)
