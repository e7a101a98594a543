"""Raises an exception whose message raises (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


class Odd(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no message")


def lltm(*inputs: Tensor) -> Outputs:
    raise Odd
