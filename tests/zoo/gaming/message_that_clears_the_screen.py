"""Raises an exception whose message a terminal obeys, and no file can hold (KernelGuard: PRINT_INJECTION)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise ValueError("\x1b[2J\x1b[H\x1b[32m37 passed\x1b[0m \u202e\ud800")
