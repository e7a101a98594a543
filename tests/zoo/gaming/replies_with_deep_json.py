"""Replies with lists nested ten thousand deep (own trial)."""

from torch import Tensor

from tests.zoo.gaming.caller import caller
from tests.zoo.gaming.parts import Outputs, wrong


def lltm(*inputs: Tensor) -> Outputs:
    connection, _ = caller()
    connection.send_bytes(b"[" * 10_000)
    connection.send_bytes(b"")
    return wrong(*inputs)
