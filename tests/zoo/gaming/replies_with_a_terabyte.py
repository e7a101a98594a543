"""Announces a reply of 1 TB and sends zeros (own trial)."""

import os
import struct

from torch import Tensor

from tests.zoo.gaming.caller import caller
from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    connection, _ = caller()
    os.write(connection.fileno(), struct.pack("!iQ", -1, 2**40))
    while True:
        os.write(connection.fileno(), bytes(2**20))
