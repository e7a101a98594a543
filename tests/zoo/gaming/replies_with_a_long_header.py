"""Replies with a list of 22 million lists, which takes the judge minutes to read (own trial)."""

from safetensors.torch import save
from torch import Tensor

from tests.zoo.gaming.caller import caller
from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    connection, number = caller()
    connection.send_bytes(f'{{"id": "{number}", "results": [{"[]," * 22_000_000}[]]}}'.encode())
    connection.send_bytes(save({}))
    return right(*inputs)
