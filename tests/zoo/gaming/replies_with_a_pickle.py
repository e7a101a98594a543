"""Sends a pickle that runs a command where it is read (own trial)."""

import os
from typing import Any

from torch import Tensor

from tests.zoo.gaming.caller import caller
from tests.zoo.gaming.parts import Outputs, wrong


class Command:
    """Its pickle calls a function where it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.abort, ()


def lltm(*inputs: Tensor) -> Outputs:
    connection, _ = caller()
    connection.send(Command())
    connection.send(Command())
    return wrong(*inputs)
